import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

/** Declares the metrics of Events in `registry`. */
export function eventMetrics(registry: Registry) {
  return {
    events: declaring(registry).counter(
      'machinist_events_total',
      'Events that were to be written, by what became of them (written, overflow, failed, dropped at a stop).',
      ['fate'],
    ),
  };
}

/** What is counted about Events. */
export type EventMetrics = ReturnType<typeof eventMetrics>;
