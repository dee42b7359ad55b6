import { isDeepStrictEqual } from 'node:util';

import type { IronCoreMachine } from '../api/machine.ts';
import type { IronCoreCondition } from '../api/reference.ts';
import { dated, conditionOf, withCondition } from '../../../work/reconcile/conditions.ts';

const TYPE = 'Scheduled';

/** Whether a Machine has a pool, as its condition says it; undefined: it says nothing. */
export function scheduledCondition({ status }: IronCoreMachine): IronCoreCondition | undefined {
  return conditionOf(status?.conditions, TYPE);
}

export type ScheduledConditionValue = Omit<IronCoreCondition, 'type' | 'lastTransitionTime'>;

export function waiting(why: string): ScheduledConditionValue {
  return { status: 'False', reason: 'OutOfCapacity', message: why };
}

/** That a Machine has a pool which there is not: nobody else would say so. */
export function astray(pool: string): ScheduledConditionValue {
  const message = `MachinePool ${pool} does not exist: create it, or create another Machine`;
  return { status: 'False', reason: 'NoMachinePool', message };
}

/** That a policy or a webhook keeps a Machine from its pool: it may be the only one for it. */
export function refused(pool: string, why: string): ScheduledConditionValue {
  const message = `The API server refuses to assign the Machine to MachinePool ${pool}: ${why}. Retried at least every minute`;
  return { status: 'False', reason: 'ApiServerRefused', message };
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
  const { conditions } = machine.status ?? {};
  const current = dated({ type: TYPE, ...said }, conditions, nowMs);
  return isDeepStrictEqual(conditionOf(conditions, TYPE), current) ? undefined : withCondition(conditions, current);
}
