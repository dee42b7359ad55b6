import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { fromTimestamp } from '../../clock/clock.ts';
import { isTerminating } from '../replicas/machine-state.ts';
import { leavingPods } from './replacements.ts';
import type { RolloutMarks } from './rollout-node-marks.ts';
import type { RolloutStage } from './rollout-stage.ts';

export interface MarkFacts {
  /** Machines of the present template, and of all others. */
  readonly current: readonly Machine[];
  readonly old: readonly Machine[];
  readonly stage: RolloutStage;
  /** UIDs of Machines that have come in place of others. */
  readonly replacements: ReadonlySet<string>;
  /** Whether rollouts keep the autoscaler from Nodes at all. */
  readonly holdsScaleDown: boolean;
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
 */
export function nodeMarksDue({
  current,
  old,
  stage,
  replacements,
  holdsScaleDown,
}: MarkFacts): Map<Machine, RolloutMarks> {
  const awaiting = new Set(stage === 'emptying' ? lastCome(current).slice(0, leavingPods(old).length) : []);
  const holdOf = (machine: Machine): Pick<RolloutMarks, 'holdScaleDown'> => {
    if (!holdsScaleDown) return { holdScaleDown: false };
    if (replacements.has(machine.metadata.uid) || awaiting.has(machine)) return { holdScaleDown: true };
    return stage === 'choosing' ? {} : { holdScaleDown: false };
  };
  const living = (machines: readonly Machine[]): readonly Machine[] => machines.filter((one) => !isTerminating(one));
  return new Map<Machine, RolloutMarks>([
    ...living(old).map((machine) => [machine, holdOf(machine)] as const),
    ...living(current).map((machine) => [machine, { taint: false, ...holdOf(machine) }] as const),
  ]);
}

function lastCome(machines: readonly Machine[]): readonly Machine[] {
  return machines
    .filter((machine) => !isTerminating(machine))
    .map((machine) => ({ machine, createdMs: fromTimestamp(machine.metadata.creationTimestamp) ?? 0 }))
    .toSorted((a, b) => b.createdMs - a.createdMs || (a.machine.metadata.name < b.machine.metadata.name ? -1 : 1))
    .map(({ machine }) => machine);
}
