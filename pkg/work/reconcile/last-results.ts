import type { ActivityRegistry } from '../activity/registry.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { KeyedQueue } from '../workqueue/keyed-queue.ts';

/** How long results may take to be recorded when the work has ended. */
const RECORDING_MS = 5_000;

/**
 * Ends long work, and the queue of those for whom it is done. Work that ends while the process stops is told to its owner in one more
 * pass, so that a successor knows that a VM is deleted and does not ask for it again; nothing else is begun. Without grace (leadership
 * was lost) nothing is recorded: it would be refused.
 */
export async function endWithResults(
  activities: Pick<ActivityRegistry, 'hasResult' | 'stop'>,
  queue: Pick<KeyedQueue, 'restrict' | 'rest' | 'stop'>,
  { clock, graceMs }: { readonly clock: Clock; readonly graceMs: number },
): Promise<void> {
  const untilMs = clock.monotonicMs() + graceMs;
  if (graceMs > 0) {
    queue.restrict((key) => activities.hasResult(key));
    await activities.stop(graceMs);
    await queue.rest(RECORDING_MS);
  }
  const leftMs = Math.max(0, untilMs - clock.monotonicMs());
  await Promise.all([queue.stop(leftMs), activities.stop(leftMs)]);
}
