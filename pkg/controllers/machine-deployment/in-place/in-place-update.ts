import {
  LAST_SCALER_CHANGE_ANNOTATION,
  SCALE_UP_DISABLED_LABEL,
  UPDATE_RESULT_LABEL,
} from '../../../apis/machine/v1alpha1/labels.ts';
import { replicasOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { API_VERSION } from '../../../apis/machine/v1alpha1/group.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { refOf } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { mergePatch, mergePatchIfUnchanged, type Patch } from '../../../kube/client/patch.ts';
import { machineSets } from '../../../kube/client/resource.ts';
import { controllerReference } from '../../../work/reconcile/ownership.ts';
import { stop, type StepResult } from '../../../work/reconcile/result.ts';
import { recordedNodeOf } from '../../machine-facts/recorded-node.ts';
import { isEmptied } from '../../machine-facts/rollout-marks.ts';
import { isJustUpdated, isTerminating } from '../../replicas/machine-state.ts';
import { isMarkedForDeletion } from '../../replicas/replica-plan.ts';
import { patchEach } from '../../replicas/patch-each.ts';
import {
  isChosenInVain,
  isForAnother,
  isNeedlessCandidate,
  isToBeUpdatedBack,
  isToBeReleased,
  isUpdated,
  settledSizes,
  sizeInPlace,
  toMove,
  toSelect,
  withNodes,
} from './in-place.ts';
import { allMarked, type Marked, type NodeOfMachine, type NodeWrite } from '../node-marks/node-marker.ts';
import {
  releaseOutdatedNode,
  releaseUpdatedNode,
  reselectNode,
  selectNode,
  withdrawNode,
  type RolloutMarks,
} from '../node-marks/rollout-node-marks.ts';
import { observeAgain, type Observed } from '../observed.ts';
import { resizeSets } from '../scaling/resize.ts';
import { shrinkOldSets } from '../rollout/rolling.ts';
import { AGAIN, createSet, finishRollout, markNodesOfRollout, type RolloutDeps } from '../rollout/rollout.ts';
import { EMPTY_SET, setToGrow, withoutRaises, type SetFacts } from '../sets/set-facts.ts';
import { grownSize } from '../scaling/size-rule.ts';
import type { DeploymentPass } from '../step.ts';

interface Side {
  readonly set: MachineSet;
  readonly facts: SetFacts;
  readonly machines: readonly NodeOfMachine[];
}

/**
 * One step of an update in place: make the new set, label old Nodes candidates, settle what was moved, fill what is missing,
 * move what is updated, choose what is next; when all is done, tidy up. See in-place.ts for who does what.
 */
export async function inPlaceUpdate(deps: RolloutDeps, pass: DeploymentPass): Promise<StepResult> {
  const { observed, signal } = pass;
  const { newSet, facts, limits, isFrozen, deployment } = observed;
  if (newSet === undefined) return isFrozen ? stop : createSet(deps, pass, grownSize(EMPTY_SET, facts.oldSets, limits));
  const before = oldSidesOf(deps, observed);
  await stopRefilling(deps, before, signal);
  if ((await releaseOutdated(deps, pass, before, newSet)).hasMore) return AGAIN;
  const marks = { taint: true, candidate: newSet.metadata.name };
  if ((await markNodesOfRollout(deps, pass, marks)).hasMore) return AGAIN;

  const marked = sidesAgain(deps, pass);
  if (marked === undefined) return AGAIN;
  const settled = withoutRaises(
    settledSizes(marked.now, marked.old, (one) => deps.moves.isCounted(one)),
    pass.observed.facts,
    isFrozen,
  );
  if (await resizeSets(deps, pass.observed, { sizes: settled, isCount: true }, signal)) return stop;
  if ((await settle(deps, pass, marked.now)).hasMore) return AGAIN;

  const sides = sidesAgain(deps, pass);
  if (sides === undefined) return AGAIN;
  const { now, old } = sides;
  const { oldSets } = pass.observed.facts;
  const size = sizeInPlace(now.facts, oldSets, limits);
  const grown = withoutRaises(new Map([[now.facts.name, size]]), pass.observed.facts, isFrozen);
  if (await resizeSets(deps, pass.observed, { sizes: grown }, signal)) return stop;
  if (await moveUpdated(deps, pass, old, now)) return AGAIN;
  if (now.facts.size >= limits.replicas) {
    const leftovers = shrinkOldSets(now.facts, oldSets, limits);
    if (await resizeSets(deps, pass.observed, { sizes: leftovers }, signal)) return stop;
  }
  if (deployment.spec.strategy?.inPlaceUpdate?.orchestrationType === 'Auto' && !isFrozen) {
    // A webhook may have taken its time to refuse a move.
    const last = sidesAgain(deps, pass);
    if (last === undefined) return AGAIN;
    const isLeftAlone = (node: Node): boolean => deps.marker.isLeftAlone(node);
    const next = toSelect(last.old, last.now, limits, { nowMs: deps.clock.now(), isLeftAlone });
    // What refuses is left alone from now on: the next pass takes others.
    if (!(await deps.marker.write(deployment, next, selectNode, signal)).isDone) return AGAIN;
  }
  return finishRollout(deps, pass);
}

/** The sets as they are after writes of this pass; undefined when a pass has to decide anew. */
function sidesAgain(
  deps: RolloutDeps,
  pass: DeploymentPass,
): { readonly now: Side; readonly old: readonly Side[] } | undefined {
  const observed = observeAgain(deps, pass.observed);
  if (observed?.newSet === undefined || observed.facts.newSet === undefined) return undefined;
  pass.observed = observed;
  return { now: sideOf(deps, observed, observed.newSet, observed.facts.newSet), old: oldSidesOf(deps, observed) };
}

/**
 * What is left to do of updates that have begun while the MachineDeployment is paused or waits for its turn: nothing is chosen any more, but
 * an updated Node is given back to its pods, and its Machine goes to the new set. One that was updated before the rollout to the present
 * template has begun, or to another template, stays where it is, and is updated again later. What is missing is made all the same.
 */
export async function endBegunUpdates(deps: RolloutDeps, pass: DeploymentPass, hasBegun: boolean): Promise<StepResult> {
  const { observed } = pass;
  const { newSet, facts } = observed;
  const old = oldSidesOf(deps, observed);
  const isNew = newSet !== undefined && facts.newSet !== undefined && hasBegun;
  const now = isNew ? sideOf(deps, observed, newSet, facts.newSet) : undefined;
  if ((await releaseOutdated(deps, pass, old, now?.set)).hasMore) return AGAIN;
  if (observeAgain(deps, observed) === undefined) return AGAIN;
  if (await fillOne(deps, pass, old, now)) return AGAIN;
  if (now === undefined) return stop;
  if ((await settle(deps, pass, now)).hasMore) return AGAIN;
  return (await moveUpdated(deps, pass, old, now)) ? AGAIN : stop;
}

/**
 * Gives the new set, or one old set while the rollout to it has not begun, what all sets together lack, but for the surge: the others may
 * be kept from making up for what they have lost. Returns whether any size was written.
 */
async function fillOne(
  deps: RolloutDeps,
  pass: DeploymentPass,
  old: readonly Side[],
  now: Side | undefined,
): Promise<boolean> {
  const { observed, signal } = pass;
  const { limits, facts, isFrozen } = observed;
  // As where replicas are obeyed: what gets a machine here would lose it there, in turns.
  const sized = old.filter(({ facts: { size } }) => size > 0);
  const growing = now?.facts ?? setToGrow((sized.length > 0 ? sized : old).map((side) => side.facts));
  const filling = now ?? old.find((side) => side.facts === growing);
  if (filling === undefined) return false;
  const others = old.filter((side) => side !== filling);
  const settled = withoutRaises(
    settledSizes(filling, others, (one) => deps.moves.isCounted(one)),
    facts,
    isFrozen,
  );
  if (await resizeSets(deps, observed, { sizes: settled, isCount: true }, signal)) return true;

  const its = others.map((side) => side.facts);
  const size = sizeInPlace(filling.facts, its, { ...limits, surge: 0 });
  const filled = withoutRaises(new Map([[filling.facts.name, size]]), facts, isFrozen);
  if (await resizeSets(deps, observed, { sizes: filled }, signal)) return true;
  await openSets(deps, pass, [filling.set].filter(isClosed));
  return false;
}

const OPEN = { metadata: { labels: { [SCALE_UP_DISABLED_LABEL]: null } } };

function isClosed({ metadata }: MachineSet): boolean {
  return metadata.labels?.[SCALE_UP_DISABLED_LABEL] !== undefined;
}

/** Lets old sets make up again for what they lose that an update in place has kept from it, once the strategy is another one. */
export async function openOldSets(deps: RolloutDeps, pass: DeploymentPass): Promise<void> {
  const { deployment, oldSets } = pass.observed;
  if (deployment.spec.strategy?.type === 'InPlaceUpdate') return;
  await openSets(
    deps,
    pass,
    oldSets.filter((set) => isClosed(set) && replicasOf(set) > 0),
  );
}

/** A webhook may refuse that, or leave the label where it is: the pass goes on all the same. */
async function openSets(deps: RolloutDeps, pass: DeploymentPass, closed: readonly MachineSet[]): Promise<void> {
  const { text } = await deps.changes.each(pass.key, closed, (set) =>
    deps.writer.patch('change', machineSets, refOf(set), mergePatch(set, OPEN), { signal: pass.signal }),
  );
  pass.refusal ??= text;
}

/**
 * Has Machines that were moved counted by the sets that they were moved to, and no longer by those that lack them: else a rollback would have
 * others made in their place, and replicas that are lowered meanwhile would not be theirs, too. It also ends what was moved to a set that is no
 * longer that of an update in place, because template or strategy have changed since: its Machines are from then on as any others; until then it
 * would never delete them. Returns whether it has changed anything.
 */
export async function countMoved(deps: RolloutDeps, observed: Observed, signal: AbortSignal): Promise<boolean> {
  const { deployment, newSet, oldSets, machinesOf } = observed;
  const isInPlace = deployment.spec.strategy?.type === 'InPlaceUpdate';
  const moved: Machine[] = [];
  const sides = [...(newSet === undefined ? [] : [newSet]), ...oldSets].map((set) => {
    const living = machinesOf(set).filter((machine) => !isTerminating(machine));
    const its = living.filter(isJustUpdated);
    const size = replicasOf(set);
    // Those of the new set in a pass after the one that has counted them, before a scaling can make its size smaller again.
    if (!(isInPlace && set === newSet) || living.length <= size) moved.push(...its);
    const isUncounted = (machine: Machine): boolean => !deps.moves.isCounted(machine);
    const uncounted = Math.min(its.filter(isUncounted).length, Math.max(0, living.length - size));
    return { name: set.metadata.name, size: size + uncounted, uncounted, missing: Math.max(0, size - living.length) };
  });
  let left = sides.reduce((sum, { uncounted }) => sum + uncounted, 0);
  const sizes = new Map<string, number>();
  for (const { name, size, missing } of sides) {
    const less = Math.min(left, missing);
    left -= less;
    sizes.set(name, size - less);
  }
  const hasCounted = await resizeSets(deps, observed, { sizes, isCount: true }, signal);
  return (await deps.moves.end(deployment, moved, signal)) || hasCounted;
}

/** Gives the Nodes back that were updated to another template than that of `newSet`; without it, all that were updated. */
function releaseOutdated(
  deps: RolloutDeps,
  { observed, signal }: DeploymentPass,
  old: readonly Side[],
  newSet: MachineSet | undefined,
): Promise<Marked> {
  const outdated = old
    .flatMap(({ machines: its }) => its)
    .filter((one) => isUpdated(one) && (newSet === undefined || isForAnother(one, newSet.metadata.name)))
    .filter(({ machine }) => !isEmptied(machine));
  return deps.marker.write(observed.deployment, outdated, releaseOutdatedNode, signal);
}

/**
 * Moves the updated Machines for which the new set has a place; returns whether any was moved. One that its set is about to delete for an
 * autoscaler stays: another would go in its place, and then it, too.
 */
async function moveUpdated(
  deps: RolloutDeps,
  { observed, signal }: DeploymentPass,
  old: readonly Side[],
  now: Side,
): Promise<boolean> {
  const { deployment, limits, isFrozen } = observed;
  if (isFrozen) return false;
  const movable = old.map((side) => {
    const changedAtMs = fromTimestamp(side.set.metadata.annotations?.[LAST_SCALER_CHANGE_ANNOTATION]);
    const isMovable = ({ machine }: NodeOfMachine): boolean =>
      !deps.moves.isLeftAlone(machine) && !isMarkedForDeletion(machine, changedAtMs);
    return { ...side, machines: side.machines.filter(isMovable) };
  });
  const moving = toMove(movable, now.facts, limits).map(({ machine }) => machine);
  return await deps.moves.move(deployment, moving, (machine) => movePatch(machine, now.set), signal);
}

/** Old sets that still count. */
function oldSidesOf(deps: RolloutDeps, observed: Observed): readonly Side[] {
  const { oldSets, facts } = observed;
  return oldSets.map((set, i) => sideOf(deps, observed, set, facts.oldSets[i] ?? EMPTY_SET)).filter(isActive);
}

function sideOf(deps: RolloutDeps, observed: Observed, set: MachineSet, facts: SetFacts): Side {
  const its = withNodes(observed.machinesOf(set), (machine) => recordedNodeOf(deps, machine));
  return { set, facts, machines: its };
}

function isActive({ facts }: Side): boolean {
  return facts.size > 0 || facts.existing > 0;
}

/** An old set must not make up for the Machines that move on. */
async function stopRefilling(deps: RolloutDeps, old: readonly Side[], signal: AbortSignal): Promise<void> {
  const sets = old.map(({ set }) => set);
  const open = sets.filter((set) => !isClosed(set));
  const close = (set: MachineSet) => mergePatch(set, { metadata: { labels: { [SCALE_UP_DISABLED_LABEL]: 'true' } } });
  await patchEach(deps.writer, machineSets, open, close, signal);
}

/**
 * Ends what was moved earlier, once the new set counts it. A Node that was updated to another template is not given back, but updated once
 * more: its Machine has never left the set that is the new one after a rollback. One that was given back before that becomes a candidate, or
 * stays chosen, for that set; any other that is not empty yet is a candidate no more. A Node that refuses, or is kept empty for a maintenance
 * or its deletion, holds up nothing else.
 */
async function settle(deps: RolloutDeps, { observed, signal }: DeploymentPass, now: Side): Promise<Marked> {
  const labelled = now.machines.map(({ machine }) => machine).filter(isJustUpdated);
  const hasAll = now.machines.length <= now.facts.size;
  const counted = labelled.filter((machine) => hasAll || deps.moves.isCounted(machine));
  await deps.moves.end(observed.deployment, counted, signal);
  const due = now.machines.filter((one) => isToBeReleased(one) && !isEmptied(one.machine));
  const { name } = now.set.metadata;
  const marks = new Map<Machine, RolloutMarks>();
  for (const one of now.machines) {
    if (isToBeUpdatedBack(one, name)) marks.set(one.machine, { taint: true, candidate: name });
    else if (isNeedlessCandidate(one, name)) marks.set(one.machine, { candidate: false });
  }
  const giveBack: NodeWrite = (target, node, its) =>
    isForAnother({ node }, name) ? reselectNode(target, node, name, its) : releaseUpdatedNode(target, node, its);
  const released = await deps.marker.write(observed.deployment, due, giveBack, signal);
  const inVain = now.machines.filter((one) => isChosenInVain(one, name));
  const takeBack: NodeWrite = (target, node, its) => withdrawNode(target, node, name, its);
  const withdrawn = await deps.marker.write(observed.deployment, inVain, takeBack, signal);
  return allMarked(released, withdrawn, await deps.marker.markEach(observed.deployment, marks, signal));
}

/** Gives an updated Machine to the new set, in one write: its controller, the labels of the new set, and that it was moved. */
function movePatch(machine: Machine, newSet: MachineSet): Patch {
  const others = (machine.metadata.ownerReferences ?? []).filter(({ controller }) => controller !== true);
  return mergePatchIfUnchanged(machine, {
    metadata: {
      ownerReferences: [controllerReference(newSet, API_VERSION, 'MachineSet'), ...others],
      labels: { ...newSet.spec.selector?.matchLabels, [UPDATE_RESULT_LABEL]: 'successful' },
    },
  });
}
