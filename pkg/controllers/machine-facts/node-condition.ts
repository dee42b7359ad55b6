import type { Node, NodeCondition } from '../../apis/wire.ts';
import { toTimestamp, type Clock } from '../../base/clock/clock.ts';
import { dated, conditionOf } from '../../work/reconcile/conditions.ts';
import type { NodeAccess } from './node-access.ts';

/** Said, with status True, of the Node of a machine that is being deleted. The original's words. */
export const NODE_TERMINATING = { type: 'Terminating', reason: 'ScaleDown' } as const;

export interface DesiredCondition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

export function nodeConditionOf(node: Node, type: string): NodeCondition | undefined {
  return conditionOf(node.status?.conditions, type);
}

/**
 * The entry to merge into a Node's conditions; undefined when the Node says the same. The transition time stays as long as the
 * status does, and the reason too when `turnsWithReason`.
 */
function conditionChange(
  node: Node,
  wanted: DesiredCondition,
  nowMs: number,
  turnsWithReason = false,
): NodeCondition | undefined {
  const old = nodeConditionOf(node, wanted.type);
  const isSameReason = (old?.reason ?? '') === wanted.reason;
  const hasTurned = old?.status !== wanted.status || (turnsWithReason && !isSameReason);
  if (!hasTurned && isSameReason && (old?.message ?? '') === wanted.message) return undefined;
  const recorded = hasTurned ? [] : node.status?.conditions;
  return { ...dated(wanted, recorded, nowMs), lastHeartbeatTime: toTimestamp(nowMs) };
}

/** Has a Node say so; false when it does already. */
export async function setCondition(
  { clock }: { readonly clock: Clock },
  { signal }: { readonly signal: AbortSignal },
  nodes: NodeAccess,
  node: Node,
  wanted: DesiredCondition,
  turnsWithReason = false,
): Promise<boolean> {
  const condition = conditionChange(node, wanted, clock.now(), turnsWithReason);
  if (condition === undefined) return false;
  await nodes.patchStatus(node, { conditions: [condition] }, signal);
  return true;
}
