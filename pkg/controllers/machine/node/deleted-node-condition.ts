import type { Machine, MachineCondition } from '../../../apis/machine/v1alpha1/machine.ts';
import { dated, conditionOf, withCondition, withoutCondition } from '../../../work/reconcile/conditions.ts';
import { holdOf } from '../../machine-facts/replacement-hold.ts';
import type { MachineCopy } from '../../machine-facts/status.ts';
import { explanation, type Fact } from '../explanation.ts';

/** Says that the Node of a machine was deleted, and why the machine is not yet. */
export const NODE_DELETED = 'NodeDeleted';

export function showNodeDeleted({ status }: MachineCopy, reason: string, message: string, nowMs: number): void {
  const { machineConditions } = status;
  const current = { type: NODE_DELETED, status: 'True', reason, message } as const;
  status.machineConditions = withCondition(machineConditions, dated(current, machineConditions, nowMs));
}

export function isNodeDeletedShown(machine: Pick<Machine, 'status'>): boolean {
  return shownBy(machine) !== undefined;
}

export function hideNodeDeleted({ status }: MachineCopy): void {
  if (shownBy({ status }) !== undefined)
    status.machineConditions = withoutCondition(status.machineConditions, NODE_DELETED);
}

/** What a machine waits for that works, or joins, and whose Node was deleted; an unhealthy one says in its last operation why it is held. */
export const whileNodeDeleted: Fact = (machine, rest) => {
  const { message, reason = '' } = shownBy(machine) ?? {};
  if (message === undefined || holdOf(machine) !== undefined) return rest();
  return reason === NEVER_REPLACED
    ? explanation(NODE_DELETED, message, 'the Machine to be deleted', 'Nothing: the machine is kept.')
    : explanation(NODE_DELETED, message, 'its turn to be replaced', IN_ITS_TURN);
};

/** Reason of the condition where only a user ends it. */
export const NEVER_REPLACED = 'HealthTimeoutDisabled';

const IN_ITS_TURN =
  'Then it is drained, deleted and replaced, even if its Node is ready. To replace it now, delete the Machine.';

function shownBy({ status }: Pick<Machine, 'status'>): MachineCondition | undefined {
  return conditionOf(status?.machineConditions, NODE_DELETED);
}
