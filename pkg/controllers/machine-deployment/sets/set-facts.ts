import { replicasOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import {
  DESIRED_REPLICAS_ANNOTATION,
  LAST_SCALER_CHANGE_ANNOTATION,
  MAX_REPLICAS_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import {
  isAvailable,
  isFailed,
  isJustUpdated,
  isOrBecomesPreserved,
  isTerminating,
} from '../../replicas/machine-state.ts';
import { isMarkedForDeletion, victimsAmong } from '../../replicas/replica-plan.ts';
import { revisionOf } from './revision.ts';
import { firstVictim, isDeletedBefore, rolloutVictimCriteria, victimCriteria } from '../../replicas/victim-order.ts';

export interface SetFacts {
  readonly name: string;
  readonly createdMs: number;
  /** Of its template: that of a rollback is the latest, however old its set is. 0 if it was changed on its creation: nobody has asked for it. */
  readonly revision: number;
  /** How many Machines it should have. */
  readonly size: number;
  /** How many it has, terminating ones included. */
  readonly existing: number;
  /** How many of them are not on their way out. */
  readonly living: number;
  /** How many of them are available and not about to go; never more than `size`. */
  readonly available: number;
  /** How many it lacks. */
  readonly missing: number;
  /**
   * By how much it can shrink, besides what is named, before an available Machine or one that is preserved goes: what is missing, and the
   * unavailable ones that go first. One that was just moved never goes.
   */
  readonly free: number;
  /** How many are preserved, and go before any available one all the same, as it has none: a rollout loses nothing by them. */
  readonly freePreserved: number;
  /** How many have failed, are preserved, and go only after an available Machine: they take a replica each and are missed as long as they stay. */
  readonly preservedFailed: number;
  /** How many Machines an autoscaler has named that the set does not know of yet. */
  readonly named: number;
  /** Replicas of the MachineDeployment when it was last scaled. */
  readonly desiredNote: number | undefined;
  /** Replicas plus surge of the MachineDeployment when it was last scaled. */
  readonly maxNote: number | undefined;
}

export const EMPTY_SET: SetFacts = {
  name: '',
  createdMs: 0,
  revision: 0,
  size: 0,
  existing: 0,
  living: 0,
  available: 0,
  missing: 0,
  free: 0,
  freePreserved: 0,
  preservedFailed: 0,
  named: 0,
  desiredNote: undefined,
  maxNote: undefined,
};

/** New sizes by name of the set; what is not named keeps its size. */
export type Resizes = ReadonlyMap<string, number>;

/** What is left of new sizes while no set may be raised, as the overshoot safety holds it back. */
export function withoutRaises(
  sizes: Resizes,
  { newSet, oldSets }: { readonly newSet: SetFacts | undefined; readonly oldSets: readonly SetFacts[] },
  isHeld: boolean,
): Resizes {
  if (!isHeld) return sizes;
  const before = new Map([...oldSets, ...(newSet === undefined ? [] : [newSet])].map(({ name, size }) => [name, size]));
  return new Map([...sizes].filter(([name, size]) => size <= (before.get(name) ?? 0)));
}

interface Role {
  /** It has another template, so that its Machines are replaced. */
  readonly isReplaced: boolean;
  /** It was made from a template, the present or an earlier one, and is stored with another one. */
  readonly isChanged?: boolean;
  /** Names of its Machines that an autoscaler wants gone. */
  readonly named: ReadonlySet<string>;
}

export function factsOf(
  set: MachineSet,
  machines: readonly Machine[],
  { isReplaced, isChanged = false, named }: Role,
  nowMs: number,
): SetFacts {
  const size = replicasOf(set);
  const staying = stayingOf(set, machines, isReplaced, nowMs);
  const criteria = isReplaced ? rolloutVictimCriteria : victimCriteria;
  const missing = Math.max(0, size - staying.length);
  const missed = staying.filter((machine) => !isAvailable(machine));
  const available = staying.filter(isAvailable);
  const isNamed = ({ metadata }: Machine): boolean => named.has(metadata.name);
  // Nothing to compare: hundreds of Machines are looked at in every pass.
  const first =
    missed.length === 0
      ? undefined
      : firstVictim(
          available.filter((machine) => !isNamed(machine)),
          nowMs,
          criteria,
        );
  const isBefore = first === undefined ? (): boolean => true : isDeletedBefore(first, nowMs, criteria);
  const free = missed.filter((machine) => isBefore(machine) && !isNamed(machine) && !isJustUpdated(machine));
  const freePreserved = free.filter((machine) => isOrBecomesPreserved(machine, nowMs)).length;
  return {
    name: set.metadata.name,
    createdMs: fromTimestamp(set.metadata.creationTimestamp) ?? 0,
    revision: isChanged ? 0 : revisionOf(set),
    size,
    existing: machines.length,
    living: machines.filter((machine) => !isTerminating(machine)).length,
    available: Math.min(available.length, size),
    missing,
    free: missing + free.length - freePreserved,
    freePreserved,
    preservedFailed: missed.filter(
      (machine) => !isBefore(machine) && isFailed(machine) && isOrBecomesPreserved(machine, nowMs),
    ).length,
    named: named.size,
    desiredNote: integerOf(set.metadata.annotations?.[DESIRED_REPLICAS_ANNOTATION]),
    maxNote: integerOf(set.metadata.annotations?.[MAX_REPLICAS_ANNOTATION]),
  };
}

/** The Machines of `set` that neither are going nor go at its next pass. */
function stayingOf(
  set: MachineSet,
  machines: readonly Machine[],
  isReplaced: boolean,
  nowMs: number,
): readonly Machine[] {
  const size = replicasOf(set);
  const living = machines.filter((machine) => !isTerminating(machine));
  const scalerChangedAtMs = fromTimestamp(set.metadata.annotations?.[LAST_SCALER_CHANGE_ANNOTATION]);
  // Below its size a set first fills up; what was marked goes right after.
  if (living.length < size) return living.filter((machine) => !isMarkedForDeletion(machine, scalerChangedAtMs));
  if (living.length === size && scalerChangedAtMs === undefined) return living;
  const isKept = (machine: Machine): boolean => isOrBecomesPreserved(machine, nowMs);
  const going = victimsAmong(living, { desired: size, isReplaced, scalerChangedAtMs, nowMs, isKept }).filter(
    ({ reason }) => reason !== 'failed',
  );
  const names = new Set(going.map(({ machine }) => machine.metadata.name));
  return living.filter(({ metadata }) => !names.has(metadata.name));
}

/** Oldest first; equally old ones by name, so that the order is total. */
export function byAge(a: Pick<SetFacts, 'createdMs' | 'name'>, b: Pick<SetFacts, 'createdMs' | 'name'>): number {
  if (a.createdMs !== b.createdMs) return a.createdMs - b.createdMs;
  if (a.name === b.name) return 0;
  return a.name < b.name ? -1 : 1;
}

/**
 * Which of these sets, none of the present template, gets what is wanted more: the one of the latest revision, of those that have an available Machine if
 * any has one. A template that was just rolled back from may never make a machine that works.
 */
export function setToGrow(sets: readonly SetFacts[]): SetFacts | undefined {
  const working = sets.filter(({ available }) => available > 0);
  return (working.length > 0 ? working : sets).toSorted((a, b) => a.revision - b.revision || byAge(a, b)).at(-1);
}

export function sumOf(sets: readonly SetFacts[], value: (set: SetFacts) => number): number {
  return sets.reduce((sum, set) => sum + value(set), 0);
}

function integerOf(text: string | undefined): number | undefined {
  return text !== undefined && /^[+-]?\d+$/.test(text) ? Number(text) : undefined;
}
