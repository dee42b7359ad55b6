import type { LeaseElector } from '../../kube/leader/elector.ts';
import type { Member } from './lifecycle.ts';

/** What is done under one Lease. */
export interface LeaderWork {
  /** Begins to work: caches brought up to the present, then workers. Called once, when we lead. */
  begin(signal: AbortSignal): Promise<void>;
  /**
   * Ends all work, see Member.stop; resolves when the last mutation has ended, not earlier. Also called when `begin` was
   * never called or failed half-way.
   */
  end(graceMs: number): Promise<void>;
}

/**
 * Work that is done only while its Lease is held: waits for the Lease, begins, and at the end releases the Lease after the
 * last mutation. When the Lease is lost the elector has to call Lifecycle.fatal. Without `elector` (--leader-elect=false)
 * the work begins at once.
 */
export function underLease(
  name: string,
  elector: Pick<LeaseElector, 'acquire' | 'release'> | undefined,
  led: LeaderWork,
): Member {
  return {
    name,
    async start(signal) {
      await elector?.acquire(signal);
      await led.begin(signal);
    },
    async stop(graceMs) {
      const end = (): Promise<void> => led.end(graceMs);
      if (elector === undefined) await end();
      else await elector.release(end);
    },
  };
}
