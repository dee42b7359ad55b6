import { Counter } from 'prom-client';
import type { Registry } from 'prom-client';

/** What the loop over Nodes does, by `action`. */
export type UnmanagedNodeMetrics = Counter<'action'>;

/** Declares the metrics of the loop over Nodes in `registry`. */
export function unmanagedNodeMetrics(registry: Registry): UnmanagedNodeMetrics {
  return new Counter({
    name: 'machinist_unmanaged_nodes_total',
    help: 'Nodes without a Machine by what was done: marked, unmarked when one has it again, removed because its machine is gone.',
    labelNames: ['action'],
    registers: [registry],
  });
}
