import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { phaseOf, providerIDOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { DEFAULT_PRIORITY, PRIORITY_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachinePhase } from '../../apis/machine/v1alpha1/phases.ts';
import { isPreparationRequested } from '../machine-facts/prepared-deletion.ts';
import { isFailed, isJustUpdated, isTerminating } from './machine-state.ts';
import { inVictimOrder, markedAtMs, priorityOf, rolloutVictimCriteria, victimCriteria } from './victim-order.ts';
import { isPreserved } from '../machine-facts/preserved.ts';

export interface ReplicaFacts {
  readonly desired: number;
  /** How many take the place of others, although they may not be adopted. */
  readonly unadopted?: number;
  /** The Machines of the set, terminating ones included. */
  readonly machines: readonly Machine[];
  /** Held back by the overshoot safety, or stopped by the brake, alone or with its MachineDeployment. */
  readonly isFrozen: boolean;
  /** A rollout replaces its Machines by those of another set. */
  readonly isReplaced: boolean;
  /** An old set of an in-place update: its Machines move on, they are not replaced. */
  readonly isScaleUpDisabled: boolean;
  /** How many Machines the MachineDeployment lets it create now; Infinity without one. */
  readonly room: number;
  /** As many live as the MachineDeployment lets: what is going makes no room. */
  readonly isCrowded: boolean;
  readonly scalerChangedAtMs: number | undefined;
  /** The size swings: what is surplus now may be wanted again in a moment. */
  readonly isSwinging: boolean;
  readonly nowMs: number;
  /** Whether a Failed Machine has to stay because somebody wants to look at it. */
  isKept(machine: Machine): boolean;
}

/** Surplus Machines in these phases are as good as new ones. */
const WORTH_KEEPING: ReadonlySet<MachinePhase | ''> = new Set(['', 'Pending', 'Available', 'Running']);

export type VictimReason = 'surplus' | 'marked' | 'failed';

export interface Victim {
  readonly machine: Machine;
  readonly reason: VictimReason;
}

/** What has to be done about the number of Machines: either some are created, or some are deleted, or nothing. */
export interface ReplicaPlan {
  readonly create: number;
  /** Machines to delete, most dispensable first; each at most once. */
  readonly victims: readonly Victim[];
  readonly heldBack: 'frozen' | 'scale-up-disabled' | 'no-room' | undefined;
  /** How many Machines are surplus and stay while the size swings. */
  readonly kept: number;
}

/**
 * Decides what a MachineSet does about its number of Machines (MCM's rules):
 *
 * | living Machines | then |
 * |---|---|
 * | fewer than desired | create the difference, as far as there is room, unless frozen or scale-up-disabled; failed ones wait until the set is full |
 * | fewer, and none may be created | delete what the autoscaler marked: it must not wait for a set that cannot fill up |
 * | fewer, and as many live as may | also the Failed ones that nobody preserves: for what replaces them there is room |
 * | enough | delete what the autoscaler marked, the rest of the surplus by deletion rank, and the Failed ones that nobody preserves |
 *
 * While the size swings, surplus Machines that can be taken back stay.
 *
 * Terminating Machines count for nothing; the replacement of a Failed one is created as soon as its deletion has begun.
 * Machines that an in-place update has just handed over are never victims.
 */
export function planReplicas(facts: ReplicaFacts): ReplicaPlan {
  const living = facts.machines.filter((machine) => !isTerminating(machine));
  const missing = facts.desired - (facts.unadopted ?? 0) - living.length;
  if (missing > 0) {
    const heldBack = holdBackReason(facts);
    const create = Math.min(missing, facts.room);
    if (heldBack === undefined && create > 0) return { create, victims: [], heldBack, kept: 0 };
    const victims = new Map<string, Victim>();
    condemn(victims, markedAmong(living, facts), 'marked');
    // Otherwise they wait until it is full: what is going makes room.
    if (heldBack === undefined && facts.isCrowded) condemn(victims, failedAmong(living, facts), 'failed');
    return { create: 0, victims: [...victims.values()], heldBack: heldBack ?? 'no-room', kept: 0 };
  }
  const all = victimsAmong(living, facts);
  const victims = facts.isSwinging ? all.filter((victim) => !mayBeTakenBack(victim)) : all;
  return { create: 0, victims, heldBack: undefined, kept: all.length - victims.length };
}

/**
 * Whether a Machine whose deletion has not been sent is as good as before when its set is raised again: its VM is there, and nobody
 * has chosen it. An autoscaler drains what it chooses, by the list or by priority, and counts on it to go.
 */
function mayBeTakenBack({ machine, reason }: Victim): boolean {
  const hasVM = providerIDOf(machine) !== '';
  const isChosen =
    priorityOf(machine) < Number(DEFAULT_PRIORITY) ||
    markedAtMs(machine) !== undefined ||
    isPreparationRequested(machine);
  return reason === 'surplus' && hasVM && !isChosen && WORTH_KEEPING.has(phaseOf(machine));
}

function holdBackReason({ isFrozen, isScaleUpDisabled }: ReplicaFacts): ReplicaPlan['heldBack'] {
  if (isFrozen) return 'frozen';
  return isScaleUpDisabled ? 'scale-up-disabled' : undefined;
}

/** Which of the `living` Machines of a set that has enough of them go. What the autoscaler marked is never spared by the rest. */
export function victimsAmong(
  living: readonly Machine[],
  facts: Pick<ReplicaFacts, 'desired' | 'isReplaced' | 'scalerChangedAtMs' | 'nowMs' | 'isKept'>,
): Victim[] {
  const candidates = living.filter((machine) => !isJustUpdated(machine));
  const marked = markedAmong(living, facts);
  const surplus = candidates.length - marked.length - facts.desired;
  const victims = new Map<string, Victim>();
  condemn(victims, marked, 'marked');
  if (surplus > 0) {
    const named = new Set(marked);
    const others = candidates.filter((machine) => !named.has(machine));
    const criteria = facts.isReplaced ? rolloutVictimCriteria : victimCriteria;
    // One that goes because it has failed counts as kept by nobody: a healthy one would go beside it.
    const isKept = (machine: Machine, nowMs: number): boolean =>
      isFailed(machine) ? facts.isKept(machine) : isPreserved(machine, nowMs);
    condemn(victims, inVictimOrder(others, facts.nowMs, criteria, isKept).slice(0, surplus), 'surplus');
  }
  condemn(victims, failedAmong(living, facts), 'failed');
  return [...victims.values()];
}

/** Adds `machines` to the victims, unless they go for another reason already. */
function condemn(victims: Map<string, Victim>, machines: readonly Machine[], reason: VictimReason): void {
  for (const machine of machines) {
    if (!victims.has(machine.metadata.name)) victims.set(machine.metadata.name, { machine, reason });
  }
}

function failedAmong(living: readonly Machine[], { isKept }: Pick<ReplicaFacts, 'isKept'>): Machine[] {
  return living.filter((machine) => !isJustUpdated(machine) && isFailed(machine) && !isKept(machine));
}

function markedAmong(
  living: readonly Machine[],
  { scalerChangedAtMs }: Pick<ReplicaFacts, 'scalerChangedAtMs'>,
): Machine[] {
  return living.filter((machine) => !isJustUpdated(machine) && isMarkedForDeletion(machine, scalerChangedAtMs));
}

/**
 * The autoscaler lowers the replicas and marks its choice in two writes by two writers; a mark that is not newer than the
 * change belongs to it, so the Machine goes even if the number has been raised again in between.
 */
export function isMarkedForDeletion(machine: Machine, scalerChangedAtMs: number | undefined): boolean {
  const markedMs = markedAtMs(machine);
  if (scalerChangedAtMs === undefined || markedMs === undefined) return false;
  return machine.metadata.annotations?.[PRIORITY_ANNOTATION] === '1' && markedMs <= scalerChangedAtMs;
}
