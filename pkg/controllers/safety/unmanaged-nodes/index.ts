import { MACHINE_LEASE } from '../../../kube/leader/names.ts';
import { unmanagedNodeMetrics } from './metrics.ts';
import type { Operator } from '../../../operator/operator.ts';
import type { Controller } from '../../../work/reconcile/controller.ts';
import type { NodesInTarget } from '../../machine-facts/nodes-in-target.ts';
import type { DeletedMachines } from '../deleted-machines.ts';
import { UnmanagedNodesController } from './controller.ts';
import { wakeNodesOf, wakeUnmanagedNodes } from './wake.ts';

const NAME = 'safety.unmanaged-nodes';

/** Marks Nodes that no Machine has, and removes those of machines that are gone. */
export function unmanagedNodes(operator: Operator, gone: DeletedMachines, nodesInTarget: NodesInTarget): Controller {
  const { clock, log, registry, config, reader } = operator;
  const { machines } = operator.caches;
  const { targets } = operator.under(MACHINE_LEASE);
  const controller = new UnmanagedNodesController({
    targets,
    machines,
    gone,
    nodesInTarget,
    reader,
    namespace: config.clusters.namespace,
    shared: operator.sharedTarget,
    metrics: unmanagedNodeMetrics(registry),
    clock,
    log: log.child({ controller: NAME }),
    creationTimeoutMs: config.machine.creationTimeoutMs,
  });
  operator.onSetBack(() => gone.clear());
  return {
    name: NAME,
    queue: 'machinesafetyunmanagednodes',
    lease: MACHINE_LEASE,
    concurrency: config.machine.concurrency,
    reconcile: (key, signal) => controller.reconcile(key, signal),
    // Nodes are judged by caches that have caught up only.
    requiresTarget: () => true,
    watches: [
      (queue) => gone.onLate((machine) => wakeNodesOf(targets.all(), queue, machine)),
      (queue) => wakeUnmanagedNodes(operator.sharedTarget?.machines ?? machines, targets.all(), queue),
    ],
  };
}
