import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

export function servedDriverMetrics(registry: Registry) {
  const { gauge, histogram } = declaring(registry);
  return {
    answered: histogram(
      'machinist_driver_served_seconds',
      'In a driver process: duration of calls in seconds, by result: OK, the code of the failure, or none for a cancelled call.',
      { labelNames: ['method', 'code'] },
    ),
    running: gauge('machinist_driver_serving', 'In a driver process: calls in progress.', ['method']),
  };
}

export type ServedDriverMetrics = ReturnType<typeof servedDriverMetrics>;
