import { isDeepStrictEqual } from 'node:util';

import { replicasOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { controllerOf, isBeingDeleted, keyOf } from '../../apis/meta.ts';
import type { Informer } from '../../kube/cache/lister.ts';
import type { Caches } from '../../operator/caches.ts';
import type { Queue } from '../../work/workqueue/queue.ts';
import { CONTROLLER_INDEX } from '../../operator/indexes/owner-index.ts';
import { isStopped } from '../replicas/creation-brake.ts';
import { cachedOwnerOf, ownersSelecting, priorityFor } from '../replicas/wake.ts';

/**
 * Enqueues a set when it changes, when a Machine changes that it controls, controlled, or could adopt, and when its MachineDeployment
 * may create again. Owners are looked up in the caches only; a reference counts only if the set of that name has its UID.
 */
export function wakeMachineSets(
  { machineSets, machines, machineDeployments }: Pick<Caches, 'machineSets' | 'machines' | 'machineDeployments'>,
  queue: Queue,
): void {
  machineSets.onChange((old, current) => {
    const set = current ?? old;
    if (set !== undefined) queue.add(keyOf(set), priorityFor(machineSets, isBeingDeleted(set)));
  });
  machineDeployments.onChange((old, current) => {
    if (!isStopped(old?.status?.conditions) || current === undefined || isStopped(current.status?.conditions)) return;
    for (const set of machineSets.byIndex(CONTROLLER_INDEX, current.metadata.uid)) queue.add(keyOf(set), 'normal');
  });
  machines.onChange((old, current) => {
    // Nothing follows for the set from heartbeats of the Node, progress texts, or the Machine's own settings.
    if (old !== undefined && current !== undefined && isDeepStrictEqual(concern(old), concern(current))) return;
    const machine = current ?? old;
    if (machine === undefined) return;
    const priority = priorityFor(machines, isBeingDeleted(machine));
    const owners = [old, current].flatMap((one) => cachedOwnerOf(machineSets, 'MachineSet', one) ?? []);
    for (const owner of new Set(owners)) {
      queue.add(keyOf(owner), priority);
      if (current === undefined) for (const sibling of siblingsOf(machineSets, owner)) queue.add(sibling, 'normal');
    }

    const isOrphan = current !== undefined && controllerOf(current) === undefined && !isBeingDeleted(current);
    if (isOrphan && mayBeAdoptedNow(old, current)) {
      for (const set of ownersSelecting(machineSets, current)) queue.add(keyOf(set), priority);
    }
  });
}

function concern({ metadata, spec, status }: Machine): unknown[] {
  const { currentStatus, lastOperation } = status ?? {};
  return [
    metadata.uid,
    metadata.generation,
    metadata.deletionTimestamp,
    metadata.labels,
    metadata.annotations,
    metadata.ownerReferences,
    spec.providerID,
    currentStatus?.phase,
    currentStatus?.preserveExpiryTime,
    lastOperation?.state === 'Failed' ? lastOperation : undefined,
  ];
}

function mayBeAdoptedNow(old: Machine | undefined, current: Machine): boolean {
  return (
    old === undefined ||
    !isDeepStrictEqual(old.metadata.labels, current.metadata.labels) ||
    !isDeepStrictEqual(old.metadata.ownerReferences, current.metadata.ownerReferences)
  );
}

/** Other sets of the same MachineDeployment that want Machines: one that is gone may have made room for theirs. */
function siblingsOf(machineSets: Informer<MachineSet>, set: MachineSet): string[] {
  const owner = controllerOf(set);
  if (owner === undefined) return [];
  return machineSets
    .byIndex(CONTROLLER_INDEX, owner.uid)
    .filter((sibling) => sibling !== set && replicasOf(sibling) > 0)
    .map(keyOf);
}
