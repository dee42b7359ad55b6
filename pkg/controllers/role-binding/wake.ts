import { keyOf } from '../../apis/meta.ts';
import type { Queue } from '../../work/workqueue/queue.ts';
import type { RoleBindingDeps } from './controller.ts';

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
  // A Secret is let go of before it is gone, if others hold it as well.
  secrets.onChange((old) => {
    if (old?.metadata.deletionTimestamp !== undefined) wakeAll(old, undefined);
  });
}
