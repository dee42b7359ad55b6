import {
  CANDIDATE_FOR_SET_ANNOTATION,
  UPDATE_RESULT_LABEL,
  CANDIDATE_FOR_UPDATE_LABEL,
  SELECTED_FOR_UPDATE_LABEL,
} from '../../../apis/machine/v1alpha1/labels.ts';
import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { conditionOf } from '../../../work/reconcile/conditions.ts';
import { isUnderMaintenance } from '../../machine-facts/maintenance.ts';
import { isUnderPreparation } from '../../machine-facts/prepared-deletion.ts';
import {
  isBeforeUpdate,
  isEmptyForUpdate,
  isUpdatedToAnother,
  isUpdateOver,
} from '../../machine-facts/rollout-marks.ts';
import { isAvailable, isFailed, isJustUpdated, isTerminating } from '../../replicas/machine-state.ts';
import type { NodeOfMachine } from '../node-marks/node-marker.ts';
import { byAge, sumOf, type Resizes, type SetFacts } from '../sets/set-facts.ts';
import { grownSize } from '../scaling/size-rule.ts';
import { byUpgradeIndex } from '../../replicas/upgrade-index.ts';
import { leastAvailable, type RolloutLimits } from '../../replicas/limits.ts';
import { isPreserved } from '../../machine-facts/preserved.ts';

/**
 * An update in place moves Machines from old sets to the new one instead of replacing them:
 *
 * | Node, Machine                                | who                                   | then                             |
 * |----------------------------------------------|---------------------------------------|----------------------------------|
 * | of an old set                                | we label the Node a candidate         | candidate                        |
 * | candidate                                    | we (Auto) or a person label it chosen | the machine controller drains it |
 * | drained                                      | the agent on the Node updates it      | Node label says the result       |
 * | successful, and the Machine healthy again    | we give the Machine to the new set    | it carries `update-result`       |
 * | … but to the template of another set         | we free the Node                      | of an old set                    |
 * | … and its set is the new one, by a rollback  | we label it chosen once more          | as any that is chosen            |
 * | chosen, not drained yet, and a rollback      | we take its labels off                | the drain ends, it is uncordoned |
 * | … but was updated to another template before | we note that it waits for its own set | as any candidate, or chosen one  |
 * | carries `update-result`, new set has room    | we take that label off, free the Node | done                             |
 * | … template or strategy have changed since    | its set counts it, and the label goes | as any other                     |
 * | failed, or no result in time                 | the machine controller                | Failed: deleted by its old set   |
 *
 * Each move is one write on the Machine; the sizes of both sets follow from where the Machines are, so that anyone who takes over
 * between any two writes goes on from there. Old sets do not refill (label `scale-up-disabled`): a Machine lost on the way is
 * made anew by the new set.
 */

const CONDITION = 'InPlaceUpdate';
const SUCCESSFUL = 'successful';

export function withNodes(
  machines: readonly Machine[],
  nodeOf: (machine: Machine) => Node | undefined,
): readonly NodeOfMachine[] {
  return machines.filter((machine) => !isTerminating(machine)).map((machine) => ({ machine, node: nodeOf(machine) }));
}

/** Its update is over and went well: it can become a Machine of the set that the update was for. */
export function isUpdated({ machine, node }: NodeOfMachine): boolean {
  return (
    node?.metadata.labels?.[UPDATE_RESULT_LABEL] === SUCCESSFUL &&
    conditionOf(machine.status?.conditions, CONDITION)?.reason === 'UpdateSuccessful' &&
    phaseOf(machine) !== 'InPlaceUpdating'
  );
}

/** Whether an update was for another set than `name`. Of one that the original chose it is not known, and is taken for one that was not. */
export function isForAnother({ node }: Pick<NodeOfMachine, 'node'>, name: string): boolean {
  const noted = node?.metadata.annotations?.[CANDIDATE_FOR_SET_ANNOTATION];
  return noted !== undefined && noted !== name;
}

/** A Machine of the new set whose Node still shows the update that it has behind it. */
export function isToBeReleased({ node }: NodeOfMachine): boolean {
  return node !== undefined && isUpdateOver(node);
}

/** A Machine of the new set, `name`, whose Node waits for an update all the same, as after a rollback, and does not need it. */
export function isNeedlessCandidate({ node }: NodeOfMachine, name: string): boolean {
  return isCandidate({ node }) && !isUnderway({ node }) && !isUpdatedToAnother(node, name);
}

/** A Machine of the new set whose Node was updated to another template before a rollback to that set: it needs an update as those of old sets do. */
export function isToBeUpdatedBack({ node }: Pick<NodeOfMachine, 'node'>, name: string): boolean {
  return node !== undefined && isUpdatedToAnother(node, name) && !isUpdateOver(node);
}

/**
 * A Machine of the new set whose Node was chosen for another template, as before a rollback, and is not empty yet. It needs no update, unless it
 * has had one already, and an agent that finds a Node as it should be may never give it a result.
 */
export function isChosenInVain({ machine, node }: NodeOfMachine, name: string): boolean {
  return (
    node?.metadata.labels?.[SELECTED_FOR_UPDATE_LABEL] !== undefined &&
    !isUpdatedToAnother(node, name) &&
    isForAnother({ node }, name) &&
    isBeforeUpdate(node) &&
    phaseOf(machine) !== 'InPlaceUpdating'
  );
}

/**
 * The sizes that follow from where Machines are: moved ones are counted by the new set, and by their old one no more. `isCounted`: it was,
 * although its label could not be taken off.
 */
export function settledSizes(
  newSet: { readonly facts: SetFacts; readonly machines: readonly NodeOfMachine[] },
  oldSets: readonly { readonly facts: SetFacts; readonly machines: readonly NodeOfMachine[] }[],
  isCounted: (machine: Machine) => boolean,
): Resizes {
  const sizes = new Map<string, number>();
  const moved = newSet.machines.filter(({ machine }) => isJustUpdated(machine) && !isCounted(machine)).length;
  const surplus = newSet.machines.length - newSet.facts.size;
  if (moved > 0 && surplus > 0) sizes.set(newSet.facts.name, newSet.facts.size + Math.min(moved, surplus));
  for (const { facts, machines } of oldSets) {
    if (machines.length < facts.size) sizes.set(facts.name, machines.length);
  }
  return sizes;
}

/**
 * The size that the new set should have, not counting what will still be moved to it. While there is an old set, it has the surge, too, whatever
 * has become of what was made for that before: without it, nothing may be unavailable where `maxUnavailable` is 0.
 */
export function sizeInPlace(newSet: SetFacts, oldSets: readonly SetFacts[], limits: RolloutLimits): number {
  const { replicas } = limits;
  if (newSet.size >= replicas) return replicas;
  const old = sumOf(oldSets, ({ size }) => size);
  return Math.max(newSet.size, replicas - old, old === 0 ? 0 : grownSize(newSet, oldSets, limits));
}

/** The Machines of old sets, by set, that are updated to the template of the new set and for which the new set has a place. Oldest set first, then by name. */
export function toMove(
  oldSets: readonly { readonly facts: SetFacts; readonly machines: readonly NodeOfMachine[] }[],
  newSet: SetFacts,
  { replicas }: RolloutLimits,
): readonly NodeOfMachine[] {
  return inOrder(oldSets)
    .filter((one) => isUpdated(one) && !isForAnother(one, newSet.name))
    .slice(0, Math.max(0, replicas - newSet.size));
}

/**
 * The Machines of old sets to update next: as many as may be unavailable besides those that are, and no more than the new set
 * still lacks. A Node that is chosen counts as unavailable from that moment. Available Machines come first: an unavailable one
 * can hardly be updated, and mostly is replaced soon. Among either a smaller upgrade index goes first, whatever set it is of.
 *
 * A Machine of an old set that has failed and is preserved is missing anyway, unless its update made it so: an image that no Machine
 * survives would take one after the other. One of the new set counts as unavailable while its Node is kept empty, for no pod can run there:
 * it is updated, and its Node not given back yet, or it was chosen for a template that was rolled back from. As many as a set is about to
 * delete count as if they were gone: while it deletes hundreds, those that stay would be chosen in their place. Nodes that are left alone,
 * because they refused, that are deleted, and those of machines in maintenance, or whose deletion is prepared, are passed over.
 * Those of the new set that were updated to another template before a rollback need no place in it.
 */
export function toSelect(
  oldSets: readonly { readonly facts: SetFacts; readonly machines: readonly NodeOfMachine[] }[],
  newSet: { readonly facts: SetFacts; readonly machines: readonly NodeOfMachine[] },
  limits: RolloutLimits,
  { nowMs, isLeftAlone }: { readonly nowMs: number; readonly isLeftAlone: (node: Node) => boolean },
): readonly NodeOfMachine[] {
  const { replicas } = limits;
  const all = inOrder(oldSets);
  const underway = all.filter(isUnderway).length;
  const isEmptied = ({ node }: NodeOfMachine): boolean => node !== undefined && isEmptyForUpdate(node);
  const cordoned = newSet.machines.filter((one) => isAvailable(one.machine) && isEmptied(one)).length;
  const usable =
    all.filter((one) => !isUnderway(one) && isAvailable(one.machine)).length + newSet.facts.available - cordoned;
  const missed = all.filter(
    (one) => isFailed(one.machine) && isPreserved(one.machine, nowMs) && !wasChosen(one),
  ).length;
  const least = leastAvailable(limits, missed);
  const going = oldSets
    .map(({ facts: { size, missing }, machines }) => Math.max(0, machines.length - (size - missing)))
    .reduce((sum, each) => sum + each, 0);
  const inTurn = (machines: readonly NodeOfMachine[], count: number): readonly NodeOfMachine[] =>
    nextOf(machines, isLeftAlone).slice(0, Math.max(0, count));
  const back = newSet.machines.filter((one) => isToBeUpdatedBack(one, newSet.facts.name));
  return inTurn([...back, ...inTurn(all, replicas - newSet.facts.size - underway)], usable - going - least);
}

/** Those of `machines` that can be chosen, in the order in which they are. */
function nextOf(machines: readonly NodeOfMachine[], isLeftAlone: (node: Node) => boolean): readonly NodeOfMachine[] {
  const candidates = machines
    .filter((one) => !isUnderway(one) && isCandidate(one) && one.node !== undefined && !isLeftAlone(one.node))
    .filter(({ machine }) => !isUnderMaintenance(machine) && !isUnderPreparation(machine))
    // Machines go with them; those that nobody replaces stay, but the machine controller does not drain such a Node.
    .filter(({ node }) => node !== undefined && !isBeingDeleted(node))
    .toSorted((a, b) => byUpgradeIndex(a.machine, b.machine));
  const [available, others] = [true, false].map((is) =>
    candidates.filter(({ machine }) => isAvailable(machine) === is),
  );
  return [...(available ?? []), ...(others ?? []).filter(({ machine }) => phaseOf(machine) !== 'Failed')];
}

function isUnderway({ node }: Pick<NodeOfMachine, 'node'>): boolean {
  return node?.metadata.labels?.[SELECTED_FOR_UPDATE_LABEL] !== undefined;
}

function isCandidate({ node }: Pick<NodeOfMachine, 'node'>): boolean {
  return node?.metadata.labels?.[CANDIDATE_FOR_UPDATE_LABEL] !== undefined;
}

/** Its Node was chosen for this update, or for one that went wrong. */
function wasChosen({ machine, node }: NodeOfMachine): boolean {
  const { labels } = node?.metadata ?? {};
  return (
    labels?.[SELECTED_FOR_UPDATE_LABEL] !== undefined ||
    labels?.[UPDATE_RESULT_LABEL] !== undefined ||
    machine.status?.lastOperation?.type === 'InPlaceUpdate'
  );
}

function inOrder(
  sets: readonly { readonly facts: SetFacts; readonly machines: readonly NodeOfMachine[] }[],
): NodeOfMachine[] {
  return sets
    .toSorted((a, b) => byAge(a.facts, b.facts))
    .flatMap(({ machines }) =>
      machines.toSorted((a, b) => (a.machine.metadata.name < b.machine.metadata.name ? -1 : 1)),
    );
}
