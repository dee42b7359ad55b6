import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

export function servedDriverMetrics(registry: Registry) {
  const { gauge, histogram } = declaring(registry);
  return {
    answered: histogram('machinist_driver_served_seconds', ['method', 'code']).help(
      'In a driver process: duration of calls in seconds, by result: OK, the code of the failure, or none for a cancelled call.',
    ),
    running: gauge('machinist_driver_serving', ['method']).help('In a driver process: calls in progress.'),
  };
}

export type ServedDriverMetrics = ReturnType<typeof servedDriverMetrics>;
