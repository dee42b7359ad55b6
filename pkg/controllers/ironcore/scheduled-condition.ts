import { isDeepStrictEqual } from 'node:util';

import type { IronCoreMachine } from '../../apis/ironcore/machine.ts';
import type { IronCoreCondition } from '../../apis/ironcore/reference.ts';
import { toTimestamp } from '../../clock/clock.ts';

const TYPE = 'Scheduled';

/** Whether a Machine has a pool, as its condition says it; undefined: it says nothing. */
export function scheduledCondition({ status }: IronCoreMachine): IronCoreCondition | undefined {
  return status?.conditions?.find(({ type }) => type === TYPE);
}

export type ScheduledConditionValue = Omit<IronCoreCondition, 'type' | 'lastTransitionTime'>;

/** Why a Machine waits. */
export function waiting(why: string): ScheduledConditionValue {
  return { status: 'False', reason: 'OutOfCapacity', message: why };
}

/** That a Machine has a pool which there is not: nobody else would say so. */
export function astray(pool: string): ScheduledConditionValue {
  const message = `MachinePool ${pool} does not exist: create it, or create another Machine`;
  return { status: 'False', reason: 'NoMachinePool', message };
}

/** Where a Machine is that has waited, or was astray. */
export function placed(pool: string): ScheduledConditionValue {
  return { status: 'True', reason: 'Placed', message: `MachinePool ${pool}` };
}

/** The conditions of a Machine with this one in the place of the former; undefined: it says so already. */
export function withScheduled(
  machine: IronCoreMachine,
  said: ScheduledConditionValue,
  nowMs: number,
): readonly IronCoreCondition[] | undefined {
  const before = scheduledCondition(machine);
  const { lastTransitionTime } = before?.status === said.status ? before : {};
  const condition = { type: TYPE, ...said, lastTransitionTime: lastTransitionTime ?? toTimestamp(nowMs) };
  if (isDeepStrictEqual(before, condition)) return undefined;
  return [...(machine.status?.conditions ?? []).filter(({ type }) => type !== TYPE), condition];
}
