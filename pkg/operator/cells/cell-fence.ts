import type { Fence } from '../../kube/gate/fence.ts';

/**
 * The fence of a shard for a cell that begins at `sinceMs` (monotonic): what it knows of its cluster is no older than that, however long the
 * shard has been held. Grace periods and health clocks begin with it, as those of a new leader do.
 */
export function openedNow(fence: Fence, sinceMs: number): Fence {
  return {
    get remainingMs() {
      return fence.remainingMs;
    },
    get token() {
      return fence.token;
    },
    get openSinceMs() {
      return fence.openSinceMs === undefined ? undefined : Math.max(fence.openSinceMs, sinceMs);
    },
  };
}
