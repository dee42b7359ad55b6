import { MANAGER_LEASE } from '../../leader/names.ts';
import type { Operator } from '../../operator/operator.ts';
import type { Controller } from '../../reconcile/controller.ts';
import { MirantisController } from './controller.ts';
import { wakeClusterMachines } from './wake.ts';

/** The front end for Machines of Mirantis Container Cloud. */
export function mirantis(operator: Operator): Controller {
  const { caches, reader, log } = operator;
  const { clusterMachines, machines, classes, nodes } = caches;
  const { writer, targets } = operator.under(MANAGER_LEASE);
  const controller = new MirantisController({
    clusterMachines,
    machines,
    classes,
    nodes,
    reader,
    writer,
    targets,
    log,
  });
  return {
    name: 'mirantis',
    queue: 'mirantis',
    lease: MANAGER_LEASE,
    // One: a pass removes classes that no Machine uses, and must not meet another between a class and its first Machine.
    concurrency: 1,
    reconcile: (key, signal) => controller.reconcile(key, signal),
    needsTarget: () => false,
    watches: [(queue) => wakeClusterMachines({ clusterMachines, machines }, queue)],
  };
}
