import { Counter } from 'prom-client';
import type { Registry } from 'prom-client';

/** What is counted about Events. */
export interface EventMetrics {
  /** By what became of them. overflow: the queue was full. failed: the server refused it. */
  readonly events: Counter<'fate'>;
}

/** Declares the metrics of Events in `registry`. */
export function eventMetrics(registry: Registry): EventMetrics {
  return {
    events: new Counter({
      name: 'machinist_events_total',
      help: 'Events that were to be written, by what became of them (written, overflow, failed).',
      labelNames: ['fate'],
      registers: [registry],
    }),
  };
}
