import { hasFinalizer } from '../../../apis/finalizers.ts';
import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { NODE_FINALIZER } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { requeue, stop, type StepResult } from '../../../work/reconcile/result.ts';
import { recordedNodeOf } from '../../machine-facts/recorded-node.ts';
import type { RolloutLimits } from '../../replicas/limits.ts';
import { isActiveSet } from '../../replicas/rollout-hold.ts';
import { cleanUpSets } from '../sets/cleanup.ts';
import { createNewSet, isFailedCreation, newSetFor } from '../sets/create-set.ts';
import { allMarked, type Marked } from '../node-marks/node-marker.ts';
import { isTaintRecorded, recordTaint, type RolloutMarks } from '../node-marks/rollout-node-marks.ts';
import { observeAgain, type Observed } from '../observed.ts';
import type { Collaborators, DeploymentPass } from '../step.ts';
import { created, creationFailed, isComplete } from './progressing-condition.ts';
import { resizeSets } from '../scaling/resize.ts';
import { growNewSet, shrinkOldSets } from './rolling.ts';
import { byAge, EMPTY_SET, sumOf, type Resizes } from '../sets/set-facts.ts';
import { grownSize } from '../scaling/size-rule.ts';
import { takeFree, takeInOrder } from '../scaling/take-free.ts';

export type RolloutDeps = Pick<
  Collaborators,
  | 'machineDeployments'
  | 'machines'
  | 'machineSets'
  | 'reader'
  | 'writer'
  | 'targets'
  | 'brake'
  | 'recorder'
  | 'clock'
  | 'holdsScaleDownDuringRollout'
  | 'holdsJoiningNodes'
  | 'marker'
  | 'moves'
  | 'changes'
  | 'creations'
>;

export const AGAIN = requeue(0, 'the rest of the rollout');

/** One step of a RollingUpdate: create the new set, or grow it, or shrink old ones; when all is done, tidy up. */
export async function rollingUpdate(deps: RolloutDeps, pass: DeploymentPass): Promise<StepResult> {
  const { observed, signal } = pass;
  const { newSet, facts, limits, isFrozen } = observed;
  if (newSet === undefined || facts.newSet === undefined) {
    return isFrozen ? stop : createSet(deps, pass, grownSize(EMPTY_SET, facts.oldSets, limits));
  }
  const grown = growNewSet(facts.newSet, facts.oldSets, limits, isFrozen);
  if (await resizeSets(deps, observed, { sizes: grown }, signal)) return stop;

  // The autoscaler must know before the first old Machine goes; the new set's growth need not wait for it.
  if ((await markNodesOfRollout(deps, pass, { taint: true })).hasMore) return AGAIN;
  const now = observeAgain(deps, observed);
  if (now?.facts.newSet === undefined) return AGAIN;
  const shrunk = shrinkOldSets(now.facts.newSet, now.facts.oldSets, limits);
  if (await resizeSets(deps, now, { sizes: shrunk }, signal)) return stop;
  return finishRollout(deps, pass);
}

/** One step of a Recreate: empty the old sets, wait for the last of their Machines, create or fill the new set. */
export async function recreate(deps: RolloutDeps, pass: DeploymentPass): Promise<StepResult> {
  const { observed, signal } = pass;
  const { newSet, facts, limits, isFrozen } = observed;
  const step = recreateStep(facts, limits, isFrozen);
  if (step.kind === 'stay') return stop;
  if ((await markNodesOfRollout(deps, pass, {})).hasMore || observeAgain(deps, observed) === undefined) return AGAIN;
  if (step.kind === 'wait') return stop;
  if (step.kind === 'shrink') {
    await resizeSets(deps, observed, { sizes: step.sizes }, signal);
    return stop;
  }
  if (newSet === undefined) return isFrozen ? stop : createSet(deps, pass, limits.replicas);
  const isRaise = (newSet.spec.replicas ?? 0) < limits.replicas;
  const sizes = new Map(isRaise && isFrozen ? [] : [[newSet.metadata.name, limits.replicas] as const]);
  if (await resizeSets(deps, observed, { sizes }, signal)) return stop;
  return finishRollout(deps, pass);
}

/** Creates the new set; a name that is taken by a stranger is avoided in the next pass. */
export async function createSet(deps: RolloutDeps, pass: DeploymentPass, replicas: number): Promise<StepResult> {
  const { observed, signal } = pass;
  const { deployment, oldSets } = observed;
  try {
    const set = await createNewSet(deps, deployment, oldSets, replicas, signal);
    if (set === undefined) return AGAIN;
    pass.announced = created(set.metadata.name);
  } catch (error) {
    const { name } = newSetFor(deployment, oldSets, replicas).metadata;
    if (isFailedCreation(error, signal)) {
      pass.announced = creationFailed(name, error);
      deps.creations.failed(deployment.metadata.uid);
    }
    pass.error = error;
  }
  return stop;
}

/**
 * Puts on the Nodes what a rollout puts there, and `onOld` on those of old sets, the taint once for each set. A Node that refuses
 * holds nothing back, but the set is noted as tainted only when all its Nodes are.
 */
export async function markNodesOfRollout(
  deps: RolloutDeps,
  { observed, signal }: DeploymentPass,
  { taint = false, ...onOld }: Pick<RolloutMarks, 'taint' | 'candidate'>,
): Promise<Marked> {
  const active = observed.oldSets.filter((set) => isActiveSet(set, deps.machines));
  if (active.length === 0) return allMarked();
  const hold = deps.holdsScaleDownDuringRollout ? { holdScaleDown: true } : {};
  let marked = allMarked();
  for (const set of active) {
    const isDue = taint && !isTaintRecorded(set);
    const marks = { ...(isDue ? { taint } : {}), ...onOld, ...hold };
    const ofSet = await deps.marker.mark(observed.deployment, observed.machinesOf(set), marks, signal);
    marked = allMarked(marked, ofSet);
    if (marked.hasMore) return marked;
    if (!isDue || !ofSet.isDone) continue;
    await recordTaint(deps, set, true, signal);
    // The set is another version now: its size is written by a pass that has seen this one.
    marked = { ...marked, hasMore: true };
  }
  if (observed.newSet === undefined) return marked;
  const others = observed.machinesOf(observed.newSet).filter((machine) => !isHeldAsItJoins(deps, machine));
  return allMarked(marked, await deps.marker.mark(observed.deployment, others, hold, signal));
}

/** Whether the Node of a machine is about to be held together with its first marks, so that it needs no write of its own. */
function isHeldAsItJoins(deps: RolloutDeps, machine: Machine): boolean {
  const node = recordedNodeOf(deps, machine);
  return (
    deps.holdsJoiningNodes &&
    phaseOf(machine) === 'Pending' &&
    (node === undefined || !hasFinalizer(node, NODE_FINALIZER))
  );
}

/** Takes old sets out of the history, once everything is of the new template. */
export async function finishRollout(deps: RolloutDeps, pass: DeploymentPass): Promise<StepResult> {
  const { deployment, newSet } = pass.observed;
  if (newSet === undefined || !isComplete(deployment, deployment.status ?? {})) return stop;
  await cleanUpSets(deps, pass);
  return stop;
}

/**
 * What a Recreate does next. stay: it is frozen before it has begun. wait: Machines of old sets still exist. grow: the new set is made, or brought
 * to its size.
 */
type RecreateStep =
  | { readonly kind: 'shrink'; readonly sizes: Resizes }
  | { readonly kind: 'stay' }
  | { readonly kind: 'wait' }
  | { readonly kind: 'grow' };

/**
 * A Recreate first empties all old sets, waits until none of their Machines is left, and only then grows the new one. While it is frozen, nothing
 * would come in the place of Machines that are wanted: only those are taken that are too many, also for a new set that is to shrink after them.
 */
export function recreateStep(
  { newSet, oldSets }: Observed['facts'],
  { replicas }: RolloutLimits,
  isFrozen: boolean,
): RecreateStep {
  const active = oldSets.filter(({ size }) => size > 0);
  if (active.length > 0 && isFrozen) {
    const excess = sumOf(active, ({ size }) => size) + (newSet?.size ?? 0) - replicas;
    if (excess <= 0) return { kind: 'stay' };
    const { sets, left } = takeFree(active.toSorted(byAge), excess);
    return { kind: 'shrink', sizes: takeInOrder(sets, left) };
  }
  if (active.length > 0) return { kind: 'shrink', sizes: new Map(active.map(({ name }) => [name, 0])) };
  return sumOf(oldSets, ({ existing }) => existing) > 0 ? { kind: 'wait' } : { kind: 'grow' };
}
