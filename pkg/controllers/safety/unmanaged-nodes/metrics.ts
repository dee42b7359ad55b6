import type { Counter, Registry } from 'prom-client';

import { declaring } from '../../../base/metrics/declaring.ts';

export type UnmanagedNodeMetrics = Counter<'action'>;

export function unmanagedNodeMetrics(registry: Registry): UnmanagedNodeMetrics {
  return declaring(registry)
    .counter('machinist_unmanaged_nodes_total', ['action'])
    .help(
      'Nodes without a Machine, by action: marked, unmarked (it has a Machine again), removed (its Machine is gone).',
    );
}
