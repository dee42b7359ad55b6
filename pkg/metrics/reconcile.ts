import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

/**
 * How a pass ended. conflict: something was changed meanwhile. gate_closed: fenced, or an outage. timeout: longer than a pass
 * may take. stopped: by shutdown. bug: an error of no known family.
 */
export type PassResult =
  'success' | 'requeue' | 'conflict' | 'gate_closed' | 'timeout' | 'stopped' | 'api_error' | 'driver_error' | 'bug';

/** Declares the reconcilers' metrics in `registry`. */
export function reconcileMetrics(registry: Registry) {
  const { counter, histogram } = declaring(registry);
  return {
    passes: counter('machinist_reconcile_passes_total', 'Passes over one object, by controller and how they ended.', [
      'controller',
      'result',
    ]),
    duration: histogram('machinist_reconcile_duration_seconds', 'How long a pass over one object took.', {
      labelNames: ['controller'],
      buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60],
    }),
  };
}

/** What is counted about passes. */
export type ReconcileMetrics = ReturnType<typeof reconcileMetrics>;
