import { phaseOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import {
  DEFAULT_PRIORITY,
  MARKED_FOR_DELETION_TIME_ANNOTATION,
  PRESERVE_ANNOTATION,
  PRIORITY_ANNOTATION,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { MachinePhase } from '../../apis/machine/v1alpha1/phases.ts';
import { fromTimestamp } from '../../base/clock/clock.ts';
import { isPreparationRequested } from '../machine-facts/prepared-deletion.ts';
import { isOrBecomesPreserved, isTerminating } from './machine-state.ts';
import { upgradeIndexOf } from './upgrade-index.ts';
import { preservedUntilMs } from '../machine-facts/preserved.ts';

/** One reason to delete a Machine before another: of two Machines the one with the smaller value goes first. */
export interface VictimCriterion {
  readonly name: string;
  of(machine: Machine, nowMs: number, isKept: IsKept): number;
}

/** Whether somebody wants to look at a Machine, also one that has failed a moment ago, whose preservation has no expiry time yet. */
type IsKept = (machine: Machine, nowMs: number) => boolean;

/** Phases that are not named here rank 0, as in the original. */
const PHASE_RANK: Partial<Record<MachinePhase, number>> = {
  Terminating: 0,
  Failed: 1,
  CrashLoopBackOff: 2,
  Unknown: 3,
  Pending: 4,
  Available: 5,
  Running: 6,
};

/** What somebody wants to look at, and whom somebody has chosen, whatever state it is in. */
const BY_WISH: readonly VictimCriterion[] = [
  { name: 'prepared for deletion first', of: (machine) => (isPreparationRequested(machine) ? 0 : 1) },
  { name: 'not preserved before preserved', of: (machine, nowMs, isKept) => (isKept(machine, nowMs) ? 1 : 0) },
  {
    name: 'preserved automatically before preserved by a user',
    of: (machine, nowMs, isKept) =>
      isKept(machine, nowMs) && machine.metadata.annotations?.[PRESERVE_ANNOTATION] !== 'auto-preserved' ? 1 : 0,
  },
  {
    name: 'preserved for a shorter time first',
    of: (machine, nowMs, isKept) => (isKept(machine, nowMs) ? (preservedUntilMs(machine) ?? Infinity) : 0),
  },
  { name: 'smaller priority first', of: priorityOf },
  { name: 'marked by the autoscaler before unmarked, earlier mark first', of: (m) => markedAtMs(m) ?? Infinity },
];

const BY_STATE: readonly VictimCriterion[] = [
  {
    name: 'worse phase first',
    of: (machine) => {
      const phase = isTerminating(machine) ? 'Terminating' : phaseOf(machine);
      return phase === '' ? 0 : (PHASE_RANK[phase] ?? 0);
    },
  },
  { name: 'older first', of: (machine) => fromTimestamp(machine.metadata.creationTimestamp) ?? 0 },
];

const BY_UPGRADE_INDEX: VictimCriterion = {
  name: 'smaller upgrade index first',
  of: (machine) => upgradeIndexOf(machine) ?? Infinity,
};

/** Which Machines go first; a later criterion counts only among Machines that all earlier ones hold equal. */
export const victimCriteria: readonly VictimCriterion[] = [...BY_WISH, ...BY_STATE];

/** Of a set whose Machines a rollout replaces. */
export const rolloutVictimCriteria: readonly VictimCriterion[] = [...BY_WISH, BY_UPGRADE_INDEX, ...BY_STATE];

/** The deletion priority that a user or an autoscaler gave; anything that is no integer counts as the default. */
export function priorityOf(machine: Machine): number {
  const text = machine.metadata.annotations?.[PRIORITY_ANNOTATION] ?? '';
  return Number(isPriority(text) ? text : DEFAULT_PRIORITY);
}

/** Whether an annotation's text is a priority: an integer of 64 bits, as in the original, where any other counts as the default. */
export function isPriority(text: string): boolean {
  if (!/^[+-]?\d+$/.test(text)) return false;
  const value = BigInt(text.replace('+', ''));
  return BigInt.asIntN(64, value) === value;
}

/** When the autoscaler chose this Machine for deletion. */
export function markedAtMs(machine: Machine): number | undefined {
  return fromTimestamp(machine.metadata.annotations?.[MARKED_FOR_DELETION_TIME_ANNOTATION]);
}

/**
 * The Machines in the order in which they are given up. The order is total: what all criteria hold equal is decided by
 * name, so two passes never choose differently.
 */
export function inVictimOrder(
  machines: readonly Machine[],
  nowMs: number,
  criteria: readonly VictimCriterion[] = victimCriteria,
  isKept: IsKept = isOrBecomesPreserved,
): Machine[] {
  const ranked = machines.map((machine) => ({ machine, rank: criteria.map((c) => c.of(machine, nowMs, isKept)) }));
  ranked.sort((a, b) => compareRanks(a.rank, b.rank) || compareNames(a.machine, b.machine));
  return ranked.map(({ machine }) => machine);
}

/** The first of the Machines in that order; undefined when there are none. Unlike the order itself it takes one look at each. */
export function firstVictim(
  machines: readonly Machine[],
  nowMs: number,
  criteria: readonly VictimCriterion[] = victimCriteria,
): Machine | undefined {
  let first: Machine | undefined;
  let isEarlier: (machine: Machine) => boolean = () => true;
  for (const machine of machines) {
    if (!isEarlier(machine)) continue;
    first = machine;
    isEarlier = isDeletedBefore(machine, nowMs, criteria);
  }
  return first;
}

export function isDeletedBefore(
  other: Machine,
  nowMs: number,
  criteria: readonly VictimCriterion[] = victimCriteria,
): (machine: Machine) => boolean {
  const ranks = criteria.map((criterion) => criterion.of(other, nowMs, isOrBecomesPreserved));
  return (machine) => {
    for (const [i, criterion] of criteria.entries()) {
      const [rank, than] = [criterion.of(machine, nowMs, isOrBecomesPreserved), ranks[i] ?? 0];
      if (rank !== than) return rank < than;
    }
    return compareNames(machine, other) < 0;
  };
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (const [i, left] of a.entries()) {
    const right = b[i] ?? 0;
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}

function compareNames(a: Machine, b: Machine): number {
  const [left, right] = [a.metadata.name, b.metadata.name];
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
