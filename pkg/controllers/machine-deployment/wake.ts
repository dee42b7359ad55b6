import { phaseOf } from '../../apis/machine/v1alpha1/defaults.ts';
import {
  CANDIDATE_FOR_UPDATE_LABEL,
  NODE_LABEL,
  SCALE_DOWN_DISABLED_BY_US_ANNOTATION,
  SELECTED_FOR_UPDATE_LABEL,
  UPDATE_RESULT_LABEL,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { controllerOf, isBeingDeleted, keyOf } from '../../apis/meta.ts';
import type { Node } from '../../apis/wire.ts';
import type { Caches } from '../../operator/caches.ts';
import { conditionOf } from '../../work/reconcile/conditions.ts';
import type { Targets } from '../../kube/targets/targets.ts';
import type { Queue } from '../../work/workqueue/queue.ts';
import { concerns } from './rollout/update-order.ts';
import { isUnderMaintenance } from '../machine-facts/maintenance.ts';
import { hasPreparationBegun } from '../machine-facts/prepared-deletion.ts';
import { holdOf } from '../machine-facts/replacement-hold.ts';
import { refusedFor } from '../machine-facts/node-refusal.ts';
import { updateOrderOf } from '../replicas/update-order-value.ts';
import { cachedOwnerOf, ownersSelecting, priorityFor } from '../replicas/wake.ts';

/**
 * Enqueues a MachineDeployment when it changes, when a set changes that it controls, controlled or could adopt, and when a
 * Machine of such a set begins or ceases to count. Machines are watched directly: a rollout that waited for the status of
 * its sets would lose a write and a watch on every step.
 */
export function wakeMachineDeployments(
  { machineDeployments, machineSets, machines }: Pick<Caches, 'machineSets' | 'machines' | 'machineDeployments'>,
  targets: Targets,
  queue: Queue,
): void {
  machineDeployments.onChange((old, current) => {
    const deployment = current ?? old;
    if (deployment !== undefined)
      queue.add(keyOf(deployment), priorityFor(machineDeployments, isBeingDeleted(deployment)));
    const earlier = [old, current].filter((one) => one !== undefined && updateOrderOf(one) !== undefined);
    if (earlier.length === 0 || !machineDeployments.hasSynced) return;
    for (const later of machineDeployments.list()) {
      if (earlier.some((one) => one !== undefined && concerns(one, later))) queue.add(keyOf(later), 'normal');
    }
  });
  machineSets.onChange((old, current) => {
    const set = current ?? old;
    if (set === undefined) return;
    const priority = priorityFor(machineSets, isBeingDeleted(set));
    const owners = [old, current].flatMap((one) => cachedOwnerOf(machineDeployments, 'MachineDeployment', one) ?? []);
    const isOrphan = current !== undefined && controllerOf(current) === undefined && !isBeingDeleted(current);
    const adopters = isOrphan ? ownersSelecting(machineDeployments, current) : [];
    for (const deployment of new Set([...owners, ...adopters])) queue.add(keyOf(deployment), priority);
  });
  const wakeOwnerOf = (machine: Machine | undefined): void => {
    const set = cachedOwnerOf(machineSets, 'MachineSet', machine);
    const deployment = cachedOwnerOf(machineDeployments, 'MachineDeployment', set);
    if (deployment !== undefined) queue.add(keyOf(deployment), machines.hasSynced ? 'normal' : 'low');
  };
  machines.onChange((old, current) => {
    if (old !== undefined && current !== undefined && countsAlike(old, current)) return;
    for (const machine of [old, current]) wakeOwnerOf(machine);
  });
  for (const { nodes } of targets.all()) {
    nodes.onChange((old, current) => {
      if (old === undefined || current === undefined || isUpdatedAlike(old, current)) return;
      for (const machine of machines.byIndex('node', current.metadata.name)) wakeOwnerOf(machine);
    });
  }
}

/** Whether a Machine means the same to its MachineDeployment as before. */
function countsAlike(old: Machine, current: Machine): boolean {
  return (
    old.metadata.uid === current.metadata.uid &&
    phaseOf(old) === phaseOf(current) &&
    isBeingDeleted(old) === isBeingDeleted(current) &&
    controllerOf(old)?.uid === controllerOf(current)?.uid &&
    old.metadata.labels?.[NODE_LABEL] === current.metadata.labels?.[NODE_LABEL] &&
    old.status?.currentStatus?.preserveExpiryTime === current.status?.currentStatus?.preserveExpiryTime &&
    inPlaceReason(old) === inPlaceReason(current) &&
    isUnderMaintenance(old) === isUnderMaintenance(current) &&
    hasPreparationBegun(old) === hasPreparationBegun(current) &&
    holdOf(old)?.kind === holdOf(current)?.kind &&
    refusedFor(old) === refusedFor(current)
  );
}

/**
 * Whether a Node is as far in its update as before, and as much kept from the autoscaler: one that joined when a rollout was about to end
 * may get that later. Its other news reach us by way of its Machine.
 */
function isUpdatedAlike(old: Node, current: Node): boolean {
  const labels = [CANDIDATE_FOR_UPDATE_LABEL, SELECTED_FOR_UPDATE_LABEL, UPDATE_RESULT_LABEL];
  const isHeld = ({ metadata }: Node): boolean =>
    metadata.annotations?.[SCALE_DOWN_DISABLED_BY_US_ANNOTATION] !== undefined;
  return (
    isHeld(old) === isHeld(current) &&
    labels.every((label) => old.metadata.labels?.[label] === current.metadata.labels?.[label]) &&
    inPlaceReason(old) === inPlaceReason(current)
  );
}

function inPlaceReason({ status }: Machine | Node): string | undefined {
  const conditions: readonly { type: string; reason?: string }[] = status?.conditions ?? [];
  return conditionOf(conditions, 'InPlaceUpdate')?.reason;
}
