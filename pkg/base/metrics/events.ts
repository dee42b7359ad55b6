import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

export function eventMetrics(registry: Registry) {
  return {
    events: declaring(registry)
      .counter('machinist_events_total', ['fate'])
      .help('Events by result (written, overflow, failed, dropped at shutdown).'),
  };
}

export type EventMetrics = ReturnType<typeof eventMetrics>;
