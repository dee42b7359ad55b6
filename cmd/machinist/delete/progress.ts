import { DELETION_POLICY_ANNOTATION, PREPARE_DELETION_ANNOTATION } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../../pkg/apis/meta.ts';
import { explain } from '../../../pkg/controllers/machine/explain/explain.ts';
import type { DeletionPolicy } from '../../../pkg/controllers/machine-facts/deletion-policy.ts';
import { frontEndField } from '../../../pkg/controllers/machine-facts/front-end-field.ts';
import {
  hasPreparationBegun,
  isPreparationRequested,
  preparationShownBy,
} from '../../../pkg/controllers/machine-facts/prepared-deletion.ts';
import { CommandError } from '../command-error.ts';

/** What is waited for: that a Machine is gone, after a preparation or not, or that nothing is left of a preparation. */
export type DeletionGoal = 'gone' | 'prepared' | 'kept';

export interface DeletionProgress {
  readonly text: string;
  readonly isDone: boolean;
}

/**
 * Where it stands with a Machine as it is now, undefined when it is gone. Throws CommandError when the goal cannot be reached any more: an
 * abort came too late, or somebody else has aborted what was prepared.
 */
export function deletionProgressOf(
  name: string,
  machine: Machine | undefined,
  goal: DeletionGoal,
  nowMs: number,
): DeletionProgress {
  if (machine === undefined) {
    if (goal === 'kept') throw tooLate(name);
    return { text: `machine "${name}" has been deleted`, isDone: true };
  }
  const { message } = explain(machine, nowMs);
  const waiting = { text: `Waiting for machine "${name}": ${message}`, isDone: false };
  if (goal === 'kept') {
    if (isBeingDeleted(machine)) throw tooLate(name);
    const isOver = !hasPreparationBegun(machine) && preparationShownBy(machine) === undefined;
    return isOver ? { text: `machine "${name}" is kept`, isDone: true } : waiting;
  }
  if (goal === 'prepared' && !isBeingDeleted(machine) && !isPreparationRequested(machine))
    throw new CommandError(`the deletion of machine "${name}" was aborted`);
  return waiting;
}

/**
 * The annotations that ask for it; undefined when none has to be written. Throws CommandError where it cannot be asked for: to prepare what
 * is being deleted, or to abort what is not prepared.
 */
export function annotationsFor(
  machine: Machine,
  goal: DeletionGoal,
  policy: DeletionPolicy | undefined,
): Record<string, string | null> | undefined {
  const { name } = machine.metadata;
  const asked = policy === undefined ? undefined : { [DELETION_POLICY_ANNOTATION]: policy };
  switch (goal) {
    case 'gone':
      return asked;
    case 'prepared':
      if (isBeingDeleted(machine)) throw new CommandError(`machine "${name}" is already being deleted`);
      return { ...asked, [PREPARE_DELETION_ANNOTATION]: 'true' };
    case 'kept':
      if (isBeingDeleted(machine)) throw tooLate(name);
      if (!isPreparationRequested(machine) && !hasPreparationBegun(machine))
        throw new CommandError(`the deletion of machine "${name}" is not being prepared`);
      return { [PREPARE_DELETION_ANNOTATION]: null };
  }
}

/** The policy that stays on the Machine after an abort, and the command that removes it; undefined if there is none. */
export function remainingPolicy(machine: Machine): string | undefined {
  const { name, namespace = 'default', annotations } = machine.metadata;
  const policy = annotations?.[DELETION_POLICY_ANNOTATION];
  if (policy === undefined) return undefined;
  const field = frontEndField(machine, 'deletionPolicy');
  const how =
    field === undefined
      ? `kubectl annotate machine -n ${namespace} ${name} ${DELETION_POLICY_ANNOTATION}-`
      : `remove ${field}`;
  return `machine "${name}" keeps deletion policy ${policy} for any later deletion; to remove it: ${how}`;
}

/** What goes on with a Machine after nobody waits for it any more, how to look at that, and how to end it where that can be done. */
export function deletionTimeoutText(machine: Machine, goal: DeletionGoal): string {
  const { name, namespace = 'default' } = machine.metadata;
  const isPreparing = goal === 'prepared' && !isBeingDeleted(machine);
  const what = goal === 'kept' ? 'the abort' : isPreparing ? 'the preparation' : 'the deletion';
  const abort = isPreparing ? `, abort it with: machinist delete machine -n ${namespace} ${name} --abort` : '';
  return `${what} continues; show it with: machinist describe machine -n ${namespace} ${name}${abort}`;
}

/** The abort of a Machine that is being deleted. */
function tooLate(name: string): CommandError {
  return new CommandError(`too late to abort: machine "${name}" is already being deleted`);
}
