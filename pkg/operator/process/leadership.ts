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

/** The part of Elector that is needed here. */
export interface Candidate {
  acquire(signal: AbortSignal): Promise<void>;
  release(mutationsEnded: () => Promise<void>): Promise<void>;
}

/**
 * Work that is done only while its Lease is held: waits for the Lease, begins, and at the end releases the Lease after the
 * last mutation. When the Lease is lost the elector has to call Lifecycle.fatal. Without `candidate` (--leader-elect=false)
 * the work begins at once.
 */
export function underLease(name: string, candidate: Candidate | undefined, led: LeaderWork): Member {
  return {
    name,
    async start(signal) {
      await candidate?.acquire(signal);
      await led.begin(signal);
    },
    async stop(graceMs) {
      const end = (): Promise<void> => led.end(graceMs);
      if (candidate === undefined) await end();
      else await candidate.release(end);
    },
  };
}
