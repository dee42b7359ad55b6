import { CANDIDATE_FOR_SET_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { next } from '../../../work/reconcile/result.ts';
import { recordedNodeOf } from '../../machine-facts/recorded-node.ts';
import { isEmptied, isUpdatedToAnother, isUpdateOver } from '../../machine-facts/rollout-marks.ts';
import { isTerminating } from '../../replicas/machine-state.ts';
import type { Collaborators, DeploymentPass, DeploymentStep } from '../step.ts';
import { allMarked, type Marked, type NodeOfMachine, type NodeWrite } from '../node-marks/node-marker.ts';
import { leavingPods } from '../node-marks/replacements.ts';
import {
  isTaintRecorded,
  recordTaint,
  releaseOutdatedNode,
  releaseUpdatedNode,
  type RolloutMarks,
} from '../node-marks/rollout-node-marks.ts';
import { rolloutStage, type RolloutStage } from './rollout-stage.ts';
import type { RolloutDeps } from './rollout.ts';

/** What Nodes carry has a reason, or goes. What is urgent was done before. */
export const nodeMarks = (deps: RolloutDeps & Pick<Collaborators, 'replacements'>): DeploymentStep => ({
  name: 'node-marks',
  async run(pass) {
    const { key, observed, notes, isCutShort = false } = pass;
    // Nobody knows whether it waits for its turn.
    if (isCutShort) return next;
    const replacements = deps.replacements.see(key, observed.sets.map(observed.machinesOf));
    // One that waits for its turn has chosen no machines yet, and may wait for long.
    const stage = pass.waitsFor === undefined ? rolloutStage(observed) : 'none';
    try {
      const { hasMore } = await settleMarks(deps, pass, { stage, replacements });
      if (hasMore) notes.alsoAfter(0, 'the rest of its nodes');
    } catch (error) {
      pass.error ??= error;
    }
    return next;
  },
});

/**
 * Takes away what Nodes carry without a reason, and keeps those from the autoscaler that have one apart from the steps of a rollout. The
 * taint goes from every Node of the new set that has it, noted or not: a rollout that was turned back may have ended before its set was noted.
 */
export async function settleMarks(
  deps: RolloutDeps,
  pass: DeploymentPass,
  { stage, replacements }: Pick<MarkFacts, 'stage' | 'replacements'>,
): Promise<Marked> {
  const { observed, signal } = pass;
  const { deployment, newSet, oldSets, machinesOf } = observed;
  const isInPlace = deployment.spec.strategy?.type === 'InPlaceUpdate';
  const current = newSet === undefined ? [] : machinesOf(newSet);
  const old = oldSets.flatMap(machinesOf);
  const { holdsScaleDownDuringRollout: holdsScaleDown } = deps;
  const isBack = (machine: Machine): boolean =>
    isInPlace && isUpdatedToAnother(recordedNodeOf(deps, machine), newSet?.metadata.name ?? '');
  const updatedBack = new Set(current.filter(isBack));
  const marks = nodeMarksDue({ current, old, stage, replacements, holdsScaleDown, updatedBack });
  const released = isInPlace ? allMarked() : await releaseUpdated(deps, pass, current, old);
  const marked = allMarked(released, await deps.marker.markEach(deployment, marks, signal));
  const noted = newSet !== undefined && marked.isDone && isTaintRecorded(newSet) ? [newSet] : [];
  const { text } = await deps.changes.each(pass.key, noted, (set) => recordTaint(deps, set, false, signal));
  pass.refusal ??= text;
  return marked;
}

/**
 * Gives back what an update in place has left after a change of the strategy: Nodes that were chosen for it, and that are updated since, of the
 * new set perhaps to another template, as after a rollback. Those that a person has updated stay as they are.
 */
async function releaseUpdated(
  deps: RolloutDeps,
  { observed: { deployment, newSet }, signal }: DeploymentPass,
  current: readonly Machine[],
  old: readonly Machine[],
): Promise<Marked> {
  const left = (machines: readonly Machine[]): readonly NodeOfMachine[] =>
    machines
      .filter((machine) => !isTerminating(machine) && !isEmptied(machine))
      .map((machine) => ({ machine, node: recordedNodeOf(deps, machine) }))
      .filter(({ node }) => node !== undefined && isUpdateOver(node) && isOfRollout(node));
  const giveBack: NodeWrite = (target, node, its, machine) => {
    const noted = node.metadata.annotations?.[CANDIDATE_FOR_SET_ANNOTATION] ?? newSet?.metadata.name;
    const release = noted === newSet?.metadata.name ? releaseUpdatedNode : releaseOutdatedNode;
    return release(target, node, its, machine);
  };
  return allMarked(
    await deps.marker.write(deployment, left(current), giveBack, signal),
    await deps.marker.write(deployment, left(old), releaseOutdatedNode, signal),
  );
}

function isOfRollout({ metadata }: Node): boolean {
  return metadata.annotations?.[CANDIDATE_FOR_SET_ANNOTATION] !== undefined;
}

export interface MarkFacts {
  /** Machines of the present template, and of all others. */
  readonly current: readonly Machine[];
  readonly old: readonly Machine[];
  readonly stage: RolloutStage;
  /** UIDs of Machines that have come in place of others. */
  readonly replacements: ReadonlySet<string>;
  readonly holdsScaleDown: boolean;
  /** Those of the present template whose Nodes an update in place has still to bring back to it. */
  readonly updatedBack?: ReadonlySet<Machine>;
}

/**
 * What the Nodes of living Machines should carry at any moment, whoever put there what they carry: a mark without a reason goes, also one
 * that was left by a process of other flags, a rollout that was turned back, or the original.
 *
 * | mark  | reason                                                                                                         |
 * |-------|----------------------------------------------------------------------------------------------------------------|
 * | hold  | the Machine came in place of another; the rollout is choosing (which puts it itself, before it takes the first) |
 * | hold  | the last of a rollout are going: for each of these one Machine, the last that came, whose pods are to come      |
 * | taint | the Machine is of an old template (which the rollout puts once)                                                |
 * | taint | its Node was updated in place to another template, and is to be updated back                                   |
 */
export function nodeMarksDue(facts: MarkFacts): Map<Machine, RolloutMarks> {
  const { current, old, stage, replacements, holdsScaleDown, updatedBack } = facts;
  const awaiting = new Set(stage === 'emptying' ? lastCome(current).slice(0, leavingPods(old).length) : []);
  const holdOf = (machine: Machine): Pick<RolloutMarks, 'holdScaleDown'> => {
    if (!holdsScaleDown) return { holdScaleDown: false };
    if (replacements.has(machine.metadata.uid) || awaiting.has(machine)) return { holdScaleDown: true };
    return stage === 'choosing' ? {} : { holdScaleDown: false };
  };
  const living = (machines: readonly Machine[]): readonly Machine[] => machines.filter((one) => !isTerminating(one));
  return new Map<Machine, RolloutMarks>([
    ...living(old).map((machine) => [machine, holdOf(machine)] as const),
    ...living(current).map((machine) => {
      const taint = updatedBack?.has(machine) === true ? {} : { taint: false };
      return [machine, { ...taint, ...holdOf(machine) }] as const;
    }),
  ]);
}

function lastCome(machines: readonly Machine[]): readonly Machine[] {
  return machines
    .filter((machine) => !isTerminating(machine))
    .map((machine) => ({ machine, createdMs: fromTimestamp(machine.metadata.creationTimestamp) ?? 0 }))
    .toSorted((a, b) => b.createdMs - a.createdMs || (a.machine.metadata.name < b.machine.metadata.name ? -1 : 1))
    .map(({ machine }) => machine);
}
