import { Counter, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';

/**
 * How a pass ended. conflict: something was changed meanwhile. gate_closed: fenced, or an outage. timeout: longer than a pass
 * may take. stopped: by shutdown. bug: an error of no known family.
 */
export type PassResult =
  'success' | 'requeue' | 'conflict' | 'gate_closed' | 'timeout' | 'stopped' | 'api_error' | 'driver_error' | 'bug';

/** What is counted about passes. */
export interface ReconcileMetrics {
  readonly passes: Counter<'controller' | 'result'>;
  readonly duration: Histogram<'controller'>;
}

/** Declares the reconcilers' metrics in `registry`. */
export function reconcileMetrics(registry: Registry): ReconcileMetrics {
  const registers = [registry];
  return {
    passes: new Counter({
      name: 'machinist_reconcile_passes_total',
      help: 'Passes over one object, by controller and how they ended.',
      labelNames: ['controller', 'result'],
      registers,
    }),
    duration: new Histogram({
      name: 'machinist_reconcile_duration_seconds',
      help: 'How long a pass over one object took.',
      labelNames: ['controller'],
      buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60],
      registers,
    }),
  };
}
