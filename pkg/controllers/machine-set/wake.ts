import { isDeepStrictEqual } from 'node:util';

import { replicasOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import { labelMatcher } from '../../apis/label-selector.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { controllerOf, isBeingDeleted, keyOf, keyBeside } from '../../apis/meta.ts';
import type { Informer } from '../../cache/lister.ts';
import type { Caches } from '../../operator/caches.ts';
import type { Priority, Queue } from '../../workqueue/queue.ts';
import { CONTROLLER_INDEX } from '../../indexes/owner-index.ts';
import { isStopped } from '../replicas/creation-brake.ts';

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
    if (old !== undefined && current !== undefined && !isOfInterest(old, current)) return;
    const machine = current ?? old;
    if (machine === undefined) return;
    const priority = priorityFor(machines, isBeingDeleted(machine));
    const keys = new Set(
      [ownerKey(machineSets, old), ownerKey(machineSets, current)].filter((key) => key !== undefined),
    );
    for (const key of keys) queue.add(key, priority);
    if (current === undefined) {
      for (const key of keys) for (const sibling of siblingsOf(machineSets, key)) queue.add(sibling, 'normal');
    }

    const isOrphan = current !== undefined && controllerOf(current) === undefined && !isBeingDeleted(current);
    if (isOrphan && mayBeAdoptedNow(old, current)) {
      for (const set of setsSelecting(machineSets, current)) queue.add(keyOf(set), priority);
    }
  });
}

/** Changes from which nothing follows for the set: heartbeats of the Node, progress texts, the Machine's own settings. */
function isOfInterest(old: Machine, current: Machine): boolean {
  return !isDeepStrictEqual(concern(old), concern(current));
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

function ownerKey(machineSets: Informer<MachineSet>, machine: Machine | undefined): string | undefined {
  const reference = machine && controllerOf(machine);
  if (machine === undefined || reference?.kind !== 'MachineSet' || reference.apiVersion !== API_VERSION)
    return undefined;
  const key = keyBeside(machine, reference.name);
  return machineSets.get(key)?.metadata.uid === reference.uid ? key : undefined;
}

/** Other sets of the same MachineDeployment that want Machines: one that is gone may have made room for theirs. */
function siblingsOf(machineSets: Informer<MachineSet>, key: string): string[] {
  const set = machineSets.get(key);
  const owner = set && controllerOf(set);
  if (owner === undefined) return [];
  return machineSets
    .byIndex(CONTROLLER_INDEX, owner.uid)
    .filter((sibling) => sibling !== set && replicasOf(sibling) > 0)
    .map(keyOf);
}

function setsSelecting(machineSets: Informer<MachineSet>, machine: Machine): MachineSet[] {
  return machineSets.list().filter(({ metadata, spec }) => {
    if (metadata.namespace !== machine.metadata.namespace) return false;
    const { selector } = spec;
    if (Object.keys(selector?.matchLabels ?? {}).length + (selector?.matchExpressions ?? []).length === 0) return false;
    try {
      return labelMatcher(selector)(machine.metadata.labels);
    } catch {
      return false; // an invalid selector selects nothing; the set's condition tells of it
    }
  });
}

/** The first list must not delay what users do; deletions go first. */
function priorityFor(informer: Informer<Machine> | Informer<MachineSet>, isDeletion: boolean): Priority {
  if (isDeletion) return 'high';
  return informer.hasSynced ? 'normal' : 'low';
}
