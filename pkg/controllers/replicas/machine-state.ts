import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { phaseOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { UPDATE_RESULT_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { Node } from '../../apis/wire.ts';
import { isUnderMaintenance } from '../machine-facts/maintenance.ts';
import { requestedPreservation } from '../machine-facts/preserve-value.ts';
import { isPreserved, preservedUntilMs } from '../machine-facts/preserved.ts';

/** How many failed Machines are listed; thousands of them would outgrow what etcd stores in one object. */
export const LISTED_FAILED_MACHINES = 100;

/**
 * A Machine on its way out: it counts for no replica. A deletionTimestamp is enough, because between a DELETE and the
 * first status write the phase still tells of better days.
 */
export function isTerminating(machine: Machine): boolean {
  return isBeingDeleted(machine) || phaseOf(machine) === 'Terminating';
}

/** Counts as available: `Running`, or `Available` without a target cluster, and not in maintenance. `minReadySeconds` has no effect. */
export function isAvailable(machine: Machine): boolean {
  const phase = phaseOf(machine);
  return !isTerminating(machine) && !isUnderMaintenance(machine) && (phase === 'Running' || phase === 'Available');
}

function isReady(machine: Machine): boolean {
  return !isTerminating(machine) && phaseOf(machine) === 'Running';
}

/** Failed, and not already on its way out. */
export function isFailed(machine: Machine): boolean {
  return !isTerminating(machine) && phaseOf(machine) === 'Failed';
}

/** What keeps a Failed Machine before its expiry time has been set. */
const KEEPING: ReadonlySet<string> = new Set(['now', 'when-failed', 'auto-preserved']);

/**
 * Whether a Failed Machine stays because it is, or is about to be, preserved; an expiry time that is past tells that it had its
 * time. `node` is its Node as far as known: undefined when the Machine names none, `missing` when it cannot be found.
 */
export function isKeptWhenFailed(machine: Machine, node: Node | 'missing' | undefined, nowMs: number): boolean {
  const untilMs = preservedUntilMs(machine);
  if (untilMs !== undefined) return untilMs > nowMs;
  return KEEPING.has(requestedPreservation(machine, node));
}

/** Preserved, or Failed and about to be, as far as the Machine tells without its Node. */
export function isOrBecomesPreserved(machine: Machine, nowMs: number): boolean {
  return isFailed(machine) ? isKeptWhenFailed(machine, 'missing', nowMs) : isPreserved(machine, nowMs);
}

/** Failed with an expiry time set, even a past one: what `preservedFailedReplicas` counts. */
export function isPreservedFailed(machine: Machine): boolean {
  return isFailed(machine) && preservedUntilMs(machine) !== undefined;
}

/** Just handed over by an in-place update: it is protected until its new set has been resized. */
export function isJustUpdated(machine: Machine): boolean {
  return machine.metadata.labels?.[UPDATE_RESULT_LABEL] === 'successful';
}

/** How many Machines there are, by what they are good for. */
export interface MachineCounts {
  /** All, whatever their phase. */
  readonly replicas: number;
  readonly ready: number;
  readonly available: number;
  readonly preservedFailed: number;
}

/** Counts Machines as the status of MachineSets and MachineDeployments shows them. */
export function countMachines(machines: readonly Machine[]): MachineCounts {
  return {
    replicas: machines.length,
    ready: machines.filter(isReady).length,
    available: machines.filter(isAvailable).length,
    preservedFailed: machines.filter(isPreservedFailed).length,
  };
}
