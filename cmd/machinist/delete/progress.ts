import { DELETION_POLICY_ANNOTATION, PREPARE_DELETION_ANNOTATION } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../../pkg/apis/meta.ts';
import { explain } from '../../../pkg/controllers/machine/explain/explain.ts';
import type { DeletionPolicy } from '../../../pkg/controllers/machines/deletion-policy.ts';
import {
  hasPreparationBegun,
  isPreparationAsked,
  preparationShownBy,
} from '../../../pkg/controllers/machines/prepared-deletion.ts';
import { CommandError } from '../command-error.ts';

/** What is waited for: that a Machine is gone, after a preparation or not, or that nothing is left of a preparation. */
export type Goal = 'gone' | 'prepared' | 'kept';

/** Where a deletion, or its abort, stands. */
export interface DeletionProgress {
  readonly text: string;
  readonly isDone: boolean;
}

/**
 * Where it stands with a Machine as it is now, undefined when it is gone. Throws CommandError when the goal cannot be reached any more: an
 * abort came too late, or somebody else has aborted what was prepared.
 */
export function progressOf(name: string, machine: Machine | undefined, goal: Goal, nowMs: number): DeletionProgress {
  if (machine === undefined) {
    if (goal === 'kept') throw tooLate(name);
    return { text: `machine "${name}" is gone`, isDone: true };
  }
  const { message } = explain(machine, nowMs);
  const waiting = { text: `Waiting for machine "${name}": ${message}`, isDone: false };
  if (goal === 'kept') {
    if (isBeingDeleted(machine)) throw tooLate(name);
    const isOver = !hasPreparationBegun(machine) && preparationShownBy(machine) === undefined;
    return isOver ? { text: `machine "${name}" is kept`, isDone: true } : waiting;
  }
  if (goal === 'prepared' && !isBeingDeleted(machine) && !isPreparationAsked(machine))
    throw new CommandError(`the deletion of machine "${name}" was aborted`);
  return waiting;
}

/**
 * The annotations that ask for it; undefined when none has to be written. Throws CommandError where it cannot be asked for: to prepare what
 * is being deleted, or to abort what is not prepared.
 */
export function annotationsFor(
  machine: Machine,
  goal: Goal,
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
      if (!isPreparationAsked(machine) && !hasPreparationBegun(machine))
        throw new CommandError(`the deletion of machine "${name}" is not being prepared`);
      return { [PREPARE_DELETION_ANNOTATION]: null };
  }
}

/** The abort of a Machine that is being deleted. */
function tooLate(name: string): CommandError {
  return new CommandError(`too late to abort: machine "${name}" is already being deleted`);
}
