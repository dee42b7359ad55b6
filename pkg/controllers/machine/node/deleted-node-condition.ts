import type { Machine, MachineCondition } from '../../../apis/machine/v1alpha1/machine.ts';
import { conditionOf } from '../../../work/reconcile/conditions.ts';
import { holdOf } from '../../machine-facts/replacement-hold.ts';
import { explanation, type Fact } from '../explanation.ts';

/** Condition type that says that the Node of a machine was deleted, and why the machine is not yet. */
export const NODE_DELETED = 'NodeDeleted';

/** Whether it says that the machine waits for its turn, which comes by itself. */
export function isWaitForTurnShown(machine: Pick<Machine, 'status'>): boolean {
  const shown = shownBy(machine);
  return shown !== undefined && !ENDED_BY_USERS.has(shown.reason ?? '');
}

/** What a machine waits for that works, or joins, and whose Node was deleted; an unhealthy one says in its last operation why it is held. */
export const whileNodeDeleted: Fact = (machine, rest) => {
  const { message, reason = '' } = shownBy(machine) ?? {};
  if (message === undefined || holdOf(machine) !== undefined) return rest();
  if (reason === NEVER_REPLACED)
    return explanation(NODE_DELETED, message, 'the Machine to be deleted', 'Nothing: the machine is kept.');
  const waitingFor = reason === PRESERVED ? 'its preservation to end' : 'its turn to be replaced';
  return explanation(NODE_DELETED, message, waitingFor, IN_ITS_TURN);
};

/** Reasons of the condition that users make and end. */
export const NEVER_REPLACED = 'HealthTimeoutDisabled';
export const IN_MAINTENANCE = 'InMaintenance';
export const PRESERVED = 'Preserved';

const ENDED_BY_USERS: ReadonlySet<string> = new Set([NEVER_REPLACED, IN_MAINTENANCE, PRESERVED]);

const IN_ITS_TURN =
  'Then it is drained, deleted and replaced, even if its Node is ready. To replace it now, delete the Machine.';

function shownBy({ status }: Pick<Machine, 'status'>): MachineCondition | undefined {
  return conditionOf(status?.machineConditions, NODE_DELETED);
}
