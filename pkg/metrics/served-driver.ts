import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

/** Declares the metrics of a driver's own process in `registry`. */
export function servedDriverMetrics(registry: Registry) {
  const { gauge, histogram } = declaring(registry);
  return {
    answered: histogram(
      'machinist_driver_served_seconds',
      'In the process of a driver: seconds that calls took, by what was answered: OK, the code of the failure, or none for a call that was given up.',
      { labelNames: ['method', 'code'] },
    ),
    running: gauge('machinist_driver_serving', 'In the process of a driver: calls that it has not answered yet.', [
      'method',
    ]),
  };
}

/** Metrics of a driver's own process. */
export type ServedDriverMetrics = ReturnType<typeof servedDriverMetrics>;
