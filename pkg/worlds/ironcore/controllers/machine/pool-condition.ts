import type { IronCoreMachinePool, IronCoreMachinePoolStatus } from '../../api/machine-pool.ts';
import type { IronCoreCondition } from '../../api/reference.ts';
import { refOf } from '../../../../apis/meta.ts';
import type { Writer } from '../../../../kube/client/client.ts';
import { ignoreNotFound } from '../../../../kube/client/errors.ts';
import { statusPatch } from '../../../../kube/client/patch.ts';
import { ironCoreMachinePools } from '../../api/resources.ts';
import { dated, conditionOf, withCondition } from '../../../../work/reconcile/conditions.ts';

export type PoolConditionValue = Omit<IronCoreCondition, 'lastTransitionTime'>;

export function hasCondition(
  pool: IronCoreMachinePool,
  { type, status, reason, message }: PoolConditionValue,
): boolean {
  const before = conditionOf(pool.status?.conditions, type);
  return before?.status === status && before.reason === reason && before.message === message;
}

/** Writes a condition of a MachinePool beside the others, unless the pool says so already or has changed. Throws ApiError. */
export async function writePoolCondition(
  writer: Pick<Writer, 'patch'>,
  pool: IronCoreMachinePool,
  said: PoolConditionValue,
  nowMs: number,
  signal: AbortSignal,
): Promise<void> {
  if (hasCondition(pool, said)) return;
  const { conditions } = pool.status ?? {};
  const status: IronCoreMachinePoolStatus = { conditions: withCondition(conditions, dated(said, conditions, nowMs)) };
  await writer
    .patch('change', ironCoreMachinePools, refOf(pool), statusPatch(pool, status), { signal })
    .catch(ignoreNotFound);
}

/** Sets a condition to Unknown when another process serves the pool. `what` was the state until then. Throws ApiError. */
export async function markPoolNotServed(
  writer: Pick<Writer, 'patch'>,
  pool: IronCoreMachinePool,
  { type, what }: { readonly type: string; readonly what: string },
  nowMs: number,
  signal: AbortSignal,
): Promise<void> {
  const before = conditionOf(pool.status?.conditions, type);
  if (before?.status !== 'True') return;
  const message = `This process no longer serves the pool; until then, ${what}. ${before.message}`;
  await writePoolCondition(writer, pool, { type, status: 'Unknown', reason: 'NotServed', message }, nowMs, signal);
}
