import { hasFinalizer } from '../../apis/finalizers.ts';
import { SECRET_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import { MACHINE_LEASE } from '../../kube/leader/names.ts';
import type { Operator } from '../../operator/operator.ts';
import type { Controller } from '../../work/reconcile/controller.ts';
import { RoleBindingController, type RoleBindingDeps } from './controller.ts';
import { keyOf } from '../../apis/meta.ts';
import type { Queue } from '../../work/workqueue/queue.ts';

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
    watches: [(queue) => wakeRoleBindings(cached, queue)],
  };
}

/** Enqueues a RoleBinding when it changes, and all of them when one, or something of ours, has gone. There are few of both. */
export function wakeRoleBindings(
  caches: Pick<
    RoleBindingDeps,
    'roleBindings' | 'machines' | 'machineSets' | 'machineDeployments' | 'classes' | 'secrets'
  >,
  queue: Queue,
): void {
  const { roleBindings, machines, machineSets, machineDeployments, classes, secrets } = caches;
  roleBindings.onChange((_old, current) => {
    if (current !== undefined) queue.add(keyOf(current));
  });
  const wakeAll = (_old: unknown, current: unknown): void => {
    if (current !== undefined) return;
    for (const binding of roleBindings.list()) queue.add(keyOf(binding));
  };
  for (const cache of [roleBindings, machines, machineSets, machineDeployments, classes]) cache.onChange(wakeAll);
  // A Secret is let go of before it is gone, and perhaps before it is deleted: its class goes first as often as not.
  secrets.onChange((old, current) => {
    const isHeld = current !== undefined && hasFinalizer(current, SECRET_FINALIZER);
    if (old !== undefined && hasFinalizer(old, SECRET_FINALIZER) && !isHeld) wakeAll(old, undefined);
  });
}
