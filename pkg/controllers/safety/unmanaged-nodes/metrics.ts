import type { Counter, Registry } from 'prom-client';

import { declaring } from '../../../base/metrics/declaring.ts';

/** What the loop over Nodes does, by `action`. */
export type UnmanagedNodeMetrics = Counter<'action'>;

/** Declares the metrics of the loop over Nodes in `registry`. */
export function unmanagedNodeMetrics(registry: Registry): UnmanagedNodeMetrics {
  return declaring(registry).counter(
    'machinist_unmanaged_nodes_total',
    'Nodes without a Machine, by action: marked, unmarked (it has a Machine again), removed (its Machine is gone).',
    ['action'],
  );
}
