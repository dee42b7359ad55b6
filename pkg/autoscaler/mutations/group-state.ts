import type { OwnerDeps } from '../../controllers/replicas/owner-deps.ts';
import { replicasOf, phaseOf, showsNode } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { type RolloutStage, rolloutStage } from '../../controllers/machine-deployment/rollout/rollout-stage.ts';
import { namesListed } from '../../controllers/machine-deployment/scaling/scaler-handoff.ts';
import { isFailed, isPreservedFailed, isTerminating } from '../../controllers/replicas/machine-state.ts';
import { observeDeployment, type Observed, ownedMachines } from '../../controllers/machine-deployment/observed.ts';
import { sumOf } from '../../controllers/machine-deployment/sets/set-facts.ts';
import { nodeAccess } from '../../controllers/machine-facts/node-access.ts';
import { isPreserved } from '../../controllers/machine-facts/preserved.ts';

export interface GroupMember {
  readonly machine: Machine;
  /** A Node has joined for it: what it was asked for is there, or may come back. */
  readonly hasNode: boolean;
  /** Its Node is gone, and may come back. */
  readonly isLost: boolean;
}

export interface GroupState {
  /** As the API server has it. */
  readonly deployment: MachineDeployment;
  /** Its Machines, by name. */
  readonly members: ReadonlyMap<string, GroupMember>;
  /** Those that fill replicas: neither on their way out, nor listed as to go, nor about to be replaced. */
  readonly filling: readonly GroupMember[];
  /** How many replicas have no Machine, or one that has failed: nothing is lost when they are taken back. */
  readonly missing: number;
  readonly rollout: RolloutStage;
  /** See `owedBy`. */
  readonly owed: number;
  readonly nowMs: number;
}

export function isKeptForInspection(machine: Machine, nowMs: number): boolean {
  return isPreserved(machine, nowMs) || isPreservedFailed(machine);
}

/** It has failed, and its MachineSet replaces it without being asked. */
export function isReplacedBySet(machine: Machine, nowMs: number): boolean {
  return isFailed(machine) && !isKeptForInspection(machine, nowMs);
}

/**
 * How many replicas a rollout may have emptied whose new Machines have yet to come. They cannot be taken back: for a smaller size the rollout
 * would empty others, and where nothing can be created, one after the other until the minimum is reached.
 *
 * | replicas of                          | filled by                                                   | yet to come                            |
 * |--------------------------------------|-------------------------------------------------------------|----------------------------------------|
 * | the new set                          | Machines with a Node                                        | the others                             |
 * | an old set with the most Nodes       | all Machines: no rollout has emptied others for them        | one for each Machine that is going     |
 * | another old set, as after a rollback | Machines with a Node: others went for them before they came | the others, and for each that is going |
 *
 * They are never more than may be unavailable. A frozen MachineDeployment empties old sets without raising the new one: there, whatever is not
 * filled is yet to come. In place a Node is chosen as soon as one more may be unavailable, and one whose update fails is emptied, while Machines
 * of its old set that have not joined stay: any old set is as another one; with Manual a person chooses, whatever the size is. A Recreate
 * creates as many as are wanted when all are gone.
 */
export function owedBy(
  sight: Pick<GroupSources, 'targets' | 'machines'>,
  observed: Pick<Observed, 'deployment' | 'newSet' | 'oldSets' | 'facts' | 'limits' | 'isFrozen' | 'machinesOf'>,
): number {
  const { newSet, oldSets, facts, limits, isFrozen, machinesOf } = observed;
  const { type, inPlaceUpdate } = observed.deployment.spec.strategy ?? {};
  const isChoosing = type === 'InPlaceUpdate' ? inPlaceUpdate?.orchestrationType === 'Auto' : type !== 'Recreate';
  if (!isChoosing || rolloutStage(observed) !== 'choosing') return 0;
  const joinedOf = (set: MachineSet): number =>
    machinesOf(set).filter((machine) => !isTerminating(machine) && hasNode(sight, machine)).length;
  const [joined, ofOld] = [newSet === undefined ? 0 : joinedOf(newSet), oldSets.map(joinedOf)];
  const most = Math.max(joined, ...ofOld);
  const old = facts.oldSets.map(({ size, named }, i) => {
    const left = Math.max(0, size - named);
    const filled = ofOld[i] === most && type !== 'InPlaceUpdate' ? left : Math.min(left, ofOld[i] ?? 0);
    return { filled, toCome: left - filled };
  });
  const filledByOld = old.reduce((sum, { filled }) => sum + filled, 0);
  const size = facts.newSet?.size ?? 0;
  const going = sumOf(facts.oldSets, ({ existing, living }) => existing - living);
  const toCome = old.reduce((sum, each) => sum + each.toCome, size - joined + going);
  const empty = limits.replicas - joined - filledByOld;
  return Math.max(0, Math.min(limits.unavailable, empty, isFrozen && newSet !== undefined ? empty : toCome));
}

/**
 * What the group cannot be smaller than without a loss: Machines with a Node, but for these, and what a rollout owes. One that is preserved keeps
 * its replica, Node or not: for a smaller size another one would go.
 */
export function neededBy({ filling, owed, nowMs }: GroupState, without: readonly string[] = []): number {
  const staying = filling.filter(({ machine, hasNode: joined }) => joined || isKeptForInspection(machine, nowMs));
  return staying.filter(({ machine }) => !without.includes(machine.metadata.name)).length + owed;
}

export type GroupSources = Pick<OwnerDeps, 'machines' | 'machineSets' | 'targets' | 'clock'>;

/** A group as the caches show it, but for the Machines that were read from the API server, by name: undefined for one that is gone. */
export function groupStateOf(
  sight: GroupSources,
  deployment: MachineDeployment,
  live: ReadonlyMap<string, Machine | undefined>,
): GroupState {
  const observed = observeDeployment(sight, deployment);
  const owned = ownedMachines(sight, deployment)
    .map((cached) => (live.has(cached.metadata.name) ? live.get(cached.metadata.name) : cached))
    .filter((machine) => machine !== undefined)
    .map((machine): [string, GroupMember] => {
      const isLost = hasLostNode(machine) && !isSeen(sight, machine);
      return [machine.metadata.name, { machine, hasNode: hasNode(sight, machine), isLost }];
    });
  const members = new Map(owned);
  const nowMs = sight.clock.now();
  const [rollout, owed] = [rolloutStage(observed), owedBy(sight, observed)];
  return { deployment, members, ...filledBy(members, deployment, nowMs), rollout, owed, nowMs };
}

/** What these Machines are to the replicas of their MachineDeployment. */
export function filledBy(
  members: GroupState['members'],
  deployment: MachineDeployment,
  nowMs: number,
): Pick<GroupState, 'filling' | 'missing'> {
  const listed = namesListed(deployment);
  const filling = [...members.values()].filter(
    ({ machine }) => !isTerminating(machine) && !listed.has(machine.metadata.name) && !isReplacedBySet(machine, nowMs),
  );
  return { filling, missing: Math.max(0, replicasOf(deployment) - filling.length) };
}

/**
 * Without a Node it has lost it, and may get it back: a machine whose Node is deleted lives on. Whether it is replaced is up to its health
 * timeout, and to what holds that back, as when a whole zone is cut off.
 */
export function hasLostNode(machine: Machine): boolean {
  const phase = phaseOf(machine);
  return phase === 'Unknown' || (showsNode(machine) && phase !== 'Running' && phase !== 'Failed');
}

/** By its own account: one that runs has a Node, even if the cache of Nodes does not show it, or nobody can tell that it is its own. */
export function hasJoined(machine: Machine): boolean {
  return phaseOf(machine) === 'Running' || phaseOf(machine) === 'Available' || hasLostNode(machine);
}

function hasNode(sight: Pick<GroupSources, 'targets' | 'machines'>, machine: Machine): boolean {
  return hasJoined(machine) || isSeen(sight, machine);
}

function isSeen({ targets, machines }: Pick<GroupSources, 'targets' | 'machines'>, machine: Machine): boolean {
  const target = targets.of(machine);
  return target !== undefined && nodeAccess(target, machines).ofMachine(machine).length > 0;
}
