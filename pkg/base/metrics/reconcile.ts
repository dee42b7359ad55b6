import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

/**
 * How a pass ended. conflict: something was changed meanwhile. gate_closed: fenced, or an outage. timeout: longer than a pass
 * may take. stopped: by shutdown. bug: an error of no known family.
 */
export type PassResult =
  | 'success'
  | 'requeue'
  | 'conflict'
  | 'gate_closed'
  | 'timeout'
  | 'stopped'
  | 'api_error'
  | 'driver_error'
  | 'bug';

export function reconcileMetrics(registry: Registry) {
  const { counter, histogram } = declaring(registry);
  return {
    passes: counter('machinist_reconcile_passes_total', ['controller', 'result']).help(
      'Reconciliations of an object, by controller and result.',
    ),
    duration: histogram(
      'machinist_reconcile_duration_seconds',
      ['controller'],
      [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60],
    ).help('Duration of the reconciliation of an object.'),
  };
}

export type ReconcileMetrics = ReturnType<typeof reconcileMetrics>;
