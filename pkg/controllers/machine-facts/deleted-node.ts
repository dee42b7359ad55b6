import type { Node } from '../../apis/wire.ts';
import { fromTimestamp } from '../../base/clock/clock.ts';
import { isReady, readySince } from './node-health.ts';

/**
 * Whether a deleted Node was not ready then, or is not now: it may have been deleted by somebody who does not see its VM. Follows from the
 * Node alone, also once it is ready again: the condition says since when.
 */
export function wasDeletedUnready(node: Node): boolean {
  if (!isReady(node)) return true;
  const readyMs = fromTimestamp(readySince(node));
  const deletedMs = fromTimestamp(node.metadata.deletionTimestamp);
  // Both are whole seconds: of the same one nobody knows.
  return readyMs !== undefined && deletedMs !== undefined && readyMs >= deletedMs;
}

/** When a deleted Node was deleted, or became ready or not ready since. */
export function deletedOrChangedMs(node: Node): number | undefined {
  const times = [node.metadata.deletionTimestamp, readySince(node)];
  const known = times.map((one) => fromTimestamp(one)).filter((one) => one !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}
