import { SCALE_UP_DISABLED_LABEL, UPDATE_RESULT_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { API_VERSION } from '../../../apis/machine/v1alpha1/group.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import type { Node } from '../../../apis/wire.ts';
import { mergePatch, mergePatchIfUnchanged, type Patch } from '../../../kube/client/patch.ts';
import { machines, machineSets } from '../../../kube/client/resource.ts';
import { controllerReference } from '../../../work/reconcile/ownership.ts';
import { recordedNodeOf } from '../../machine-facts/recorded-node.ts';
import { isEmptied } from '../../machine-facts/rollout-marks.ts';
import { isJustUpdated } from '../../replicas/machine-state.ts';
import { patchEach } from '../../replicas/patch-each.ts';
import {
  isForAnother,
  isNeedlessCandidate,
  isToBeReleased,
  isUpdated,
  settledSizes,
  sizeInPlace,
  toMove,
  toSelect,
  withNodes,
} from './in-place.ts';
import { bothMarked, type Marked, type NodeOfMachine } from '../node-marks/node-marker.ts';
import { releaseOutdatedNode, releaseUpdatedNode, selectNode } from '../node-marks/rollout-node-marks.ts';
import { resizeSets } from '../scaling/resize.ts';
import { shrinkOldSets } from '../rollout/rolling.ts';
import {
  createSet,
  finishRollout,
  markNodesOfRollout,
  type RolloutPass,
  type RolloutResult,
} from '../rollout/rollout.ts';
import { EMPTY_SET, type Resizes, type SetFacts } from '../sets/set-facts.ts';
import { grownSize } from '../scaling/size-rule.ts';

interface Side {
  readonly set: MachineSet;
  readonly facts: SetFacts;
  readonly machines: readonly NodeOfMachine[];
}

/**
 * One step of an update in place: make the new set, label old Nodes candidates, settle what was moved, fill what is missing,
 * move what is updated, choose what is next; when all is done, tidy up. See in-place.ts for who does what.
 */
export async function inPlaceUpdate(pass: RolloutPass): Promise<RolloutResult> {
  const { deps, observed, signal } = pass;
  const { newSet, facts, limits, isFrozen, deployment } = observed;
  if (newSet === undefined || facts.newSet === undefined) {
    return isFrozen ? {} : createSet(pass, grownSize(EMPTY_SET, facts.oldSets, limits));
  }
  const now = sideOf(pass, newSet, facts.newSet);
  const old = observed.oldSets.map((set, i) => sideOf(pass, set, facts.oldSets[i] ?? EMPTY_SET)).filter(isActive);
  await stopRefilling(pass, old);
  if ((await releaseOutdated(pass, old, newSet)).hasMore) return { again: true };
  const marks = { taint: true, candidate: newSet.metadata.name };
  if ((await markNodesOfRollout(pass, marks)).hasMore) return { again: true };

  const settled = withoutRaises(settledSizes(now, old), facts, isFrozen);
  if (await resizeSets(deps, observed, { sizes: settled }, signal)) return {};
  if ((await settle(pass, now)).hasMore) return { again: true };

  const size = sizeInPlace(facts.newSet, facts.oldSets, limits);
  const grown = withoutRaises(new Map([[facts.newSet.name, size]]), facts, isFrozen);
  if (await resizeSets(deps, observed, { sizes: grown }, signal)) return {};
  if (await moveUpdated(pass, old, newSet, facts.newSet)) return { again: true };
  if (facts.newSet.size >= limits.replicas) {
    const leftovers = shrinkOldSets(facts.newSet, facts.oldSets, limits);
    if (await resizeSets(deps, observed, { sizes: leftovers }, signal)) return {};
  } else if (deployment.spec.strategy?.inPlaceUpdate?.orchestrationType === 'Auto' && !isFrozen) {
    const isLeftAlone = (node: Node): boolean => deps.marker.isLeftAlone(node);
    const next = toSelect(old, now, limits, { nowMs: deps.clock.now(), isLeftAlone });
    // What refuses is left alone from now on: the next pass takes others.
    if (!(await deps.marker.write(deployment, next, selectNode, signal)).isDone) return { again: true };
  }
  return finishRollout(pass);
}

/**
 * What is left to do of updates that have begun while the MachineDeployment is paused or waits for its turn: nothing is chosen any more, but
 * an updated Node is given back to its pods, and its Machine goes to the new set. One that was updated before the rollout to the present
 * template has begun, or to another template, stays where it is, and is updated again later.
 */
export async function endBegunUpdates(pass: RolloutPass, hasBegun: boolean): Promise<RolloutResult> {
  const { deps, observed, signal } = pass;
  const { newSet, facts, isFrozen } = observed;
  const old = observed.oldSets.map((set, i) => sideOf(pass, set, facts.oldSets[i] ?? EMPTY_SET)).filter(isActive);
  if (newSet === undefined || facts.newSet === undefined || !hasBegun) {
    return { again: (await releaseOutdated(pass, old, undefined)).hasMore };
  }
  if ((await releaseOutdated(pass, old, newSet)).hasMore) return { again: true };
  const now = sideOf(pass, newSet, facts.newSet);
  if (now.machines.some(({ machine }) => isJustUpdated(machine))) {
    const settled = withoutRaises(settledSizes(now, old), facts, isFrozen);
    if (await resizeSets(deps, observed, { sizes: settled }, signal)) return { again: true };
  }
  if ((await settle(pass, now)).hasMore) return { again: true };
  return { again: await moveUpdated(pass, old, newSet, facts.newSet) };
}

/** Gives the Nodes back that were updated to another template than that of `newSet`; without it, all that were updated. */
function releaseOutdated(pass: RolloutPass, old: readonly Side[], newSet: MachineSet | undefined): Promise<Marked> {
  const outdated = old
    .flatMap(({ machines: its }) => its)
    .filter((one) => isUpdated(one) && (newSet === undefined || isForAnother(one, newSet.metadata.name)))
    .filter(({ machine }) => !isEmptied(machine));
  return pass.deps.marker.write(pass.observed.deployment, outdated, releaseOutdatedNode, pass.signal);
}

/** Moves the updated Machines for which the new set has a place; returns whether there are any. */
async function moveUpdated(
  pass: RolloutPass,
  old: readonly Side[],
  newSet: MachineSet,
  itsFacts: SetFacts,
): Promise<boolean> {
  const { limits, isFrozen } = pass.observed;
  const moving = isFrozen ? [] : toMove(old, itsFacts, limits);
  const owned = moving.map(({ machine }) => machine);
  await patchEach(pass.deps.writer, machines, owned, (machine) => movePatch(machine, newSet), pass.signal);
  return moving.length > 0;
}

function sideOf({ deps, observed }: RolloutPass, set: MachineSet, facts: SetFacts): Side {
  const its = withNodes(observed.machinesOf(set), (machine) => recordedNodeOf(deps, machine));
  return { set, facts, machines: its };
}

function isActive({ facts }: Side): boolean {
  return facts.size > 0 || facts.existing > 0;
}

/** What the overshoot safety holds back. */
function withoutRaises(
  sizes: Resizes,
  { newSet, oldSets }: { readonly newSet: SetFacts | undefined; readonly oldSets: readonly SetFacts[] },
  isFrozen: boolean,
): Resizes {
  if (!isFrozen) return sizes;
  const before = new Map([...oldSets, ...(newSet === undefined ? [] : [newSet])].map(({ name, size }) => [name, size]));
  return new Map([...sizes].filter(([name, size]) => size <= (before.get(name) ?? 0)));
}

/** An old set must not make up for the Machines that move on. */
async function stopRefilling({ deps, signal }: RolloutPass, old: readonly Side[]): Promise<void> {
  const sets = old.map(({ set }) => set);
  const open = sets.filter(({ metadata }) => metadata.labels?.[SCALE_UP_DISABLED_LABEL] === undefined);
  const close = (set: MachineSet) => mergePatch(set, { metadata: { labels: { [SCALE_UP_DISABLED_LABEL]: 'true' } } });
  await patchEach(deps.writer, machineSets, open, close, signal);
}

/** Ends what was moved earlier, once the new set counts it. A Node that refuses to be given back, or is kept empty for a maintenance or its deletion, holds up nothing else. */
async function settle(pass: RolloutPass, now: Side): Promise<Marked> {
  const { deps, observed, signal } = pass;
  const counted = now.machines.length <= now.facts.size ? now.machines : [];
  const labelled = counted.map(({ machine }) => machine).filter(isJustUpdated);
  const unlabel = (machine: Machine) => mergePatch(machine, { metadata: { labels: { [UPDATE_RESULT_LABEL]: null } } });
  await patchEach(deps.writer, machines, labelled, unlabel, signal);
  const needless = now.machines.filter(isNeedlessCandidate).map(({ machine }) => machine);
  const due = now.machines.filter((one) => isToBeReleased(one) && !isEmptied(one.machine));
  const released = await deps.marker.write(observed.deployment, due, releaseUpdatedNode, signal);
  return bothMarked(released, await deps.marker.mark(observed.deployment, needless, { candidate: false }, signal));
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
