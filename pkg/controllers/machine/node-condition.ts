import type { Node, NodeCondition } from '../../apis/wire.ts';
import { toTimestamp } from '../../clock/clock.ts';

/** What a condition of a Node should say. */
export interface WantedCondition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

/** The condition of that type on a Node. */
export function conditionOf(node: Node, type: string): NodeCondition | undefined {
  return node.status?.conditions?.find((condition) => condition.type === type);
}

/**
 * The entry to merge into a Node's conditions; undefined when the Node says the same. The transition time stays as long as the
 * status does, and the reason too when `turnsWithReason`.
 */
export function conditionChange(
  node: Node,
  wanted: WantedCondition,
  nowMs: number,
  turnsWithReason = false,
): NodeCondition | undefined {
  const old = conditionOf(node, wanted.type);
  const isSameReason = (old?.reason ?? '') === wanted.reason;
  const hasTurned = old?.status !== wanted.status || (turnsWithReason && !isSameReason);
  if (!hasTurned && isSameReason && (old?.message ?? '') === wanted.message) return undefined;
  const now = toTimestamp(nowMs);
  return { ...wanted, lastHeartbeatTime: now, lastTransitionTime: hasTurned ? now : (old?.lastTransitionTime ?? now) };
}
