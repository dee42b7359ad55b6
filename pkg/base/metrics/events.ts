import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

export function eventMetrics(registry: Registry) {
  return {
    events: declaring(registry).counter(
      'machinist_events_total',
      'Events by result (written, overflow, failed, dropped at shutdown).',
      ['fate'],
    ),
  };
}

export type EventMetrics = ReturnType<typeof eventMetrics>;
