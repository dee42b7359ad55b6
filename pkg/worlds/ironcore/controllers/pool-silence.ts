import type { IronCoreCondition } from '../api/reference.ts';

/** What a pool shows of being looked after. */
export interface PoolSigns {
  /** Of its Lease; undefined: there is none. */
  readonly renewTime: string | undefined;
  readonly ready: Pick<IronCoreCondition, 'status' | 'observedGeneration'> | undefined;
}

/** The signs of a pool, and since when they have been the same (monotonic). */
export interface PoolSilence extends PoolSigns {
  readonly uid: string;
  readonly sinceMs: number;
}

/** A pool that shows nothing new for so long is looked after by nobody: five times as long as it takes between two signs. */
export const LONGEST_SILENCE_MS = 50_000;

/**
 * What is known of a pool with what it shows now. Times are ours alone: the clock of who renews the Lease is not believed. That it is
 * Unknown is no sign: it was said for the lack of them.
 */
export function listenTo(before: PoolSilence | undefined, uid: string, signs: PoolSigns, nowMs: number): PoolSilence {
  const isSame = before?.uid === uid && before.renewTime === signs.renewTime && isSameReady(before.ready, signs.ready);
  return { uid, ...signs, sinceMs: isSame ? before.sinceMs : nowMs };
}

function isSameReady(before: PoolSigns['ready'], now: PoolSigns['ready']): boolean {
  if (now?.status === 'Unknown') return true;
  return before?.status === now?.status && before?.observedGeneration === now?.observedGeneration;
}
