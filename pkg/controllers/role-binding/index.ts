import { MACHINE_LEASE } from '../../kube/leader/names.ts';
import type { Operator } from '../../operator/operator.ts';
import type { Controller } from '../../work/reconcile/controller.ts';
import { RoleBindingController } from './controller.ts';
import { wakeRoleBindings } from './wake.ts';

/** Keeps our permissions in the namespace of the Machines until nothing of ours is left there. */
export function roleBinding(operator: Operator): Controller {
  const { caches, reader, config, log } = operator;
  const { roleBindings, machines, machineSets, machineDeployments, classes, secrets } = caches;
  const cached = { roleBindings, machines, machineSets, machineDeployments, classes, secrets };
  const { writer } = operator.under(MACHINE_LEASE);
  const controller = new RoleBindingController({
    ...cached,
    reader,
    writer,
    namespace: config.clusters.namespace,
    log,
  });
  return {
    name: 'role-binding',
    queue: 'rolebinding',
    lease: MACHINE_LEASE,
    concurrency: 1,
    reconcile: (key, signal) => controller.reconcile(key, signal),
    requiresTarget: () => false,
    watches: [(queue) => wakeRoleBindings(cached, queue)],
  };
}
