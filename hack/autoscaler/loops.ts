import { setTimeout as sleep } from 'node:timers/promises';

import type { Autoscaler } from './autoscaler.ts';
import type { Cluster } from './cluster.ts';
import { schedule } from './scheduler.ts';

/** What runs, and until when. */
export interface LoopsOptions {
  readonly autoscaler: Autoscaler;
  readonly cluster: Cluster;
  /** Pause between two loops, as flag `--scan-interval`. */
  readonly scanMs: number;
  readonly signal: AbortSignal;
  /** Told why a loop was lost. */
  readonly onLost: (err: unknown) => void;
}

/**
 * Runs the autoscaler and a scheduler one after the other, again and again. A loop that is lost is told of, and the next one comes.
 * Resolves when the signal is aborted and every removal that had begun has ended.
 */
export async function runLoops({ autoscaler, cluster, scanMs, signal, onLost }: LoopsOptions): Promise<void> {
  const attempt = async (run: () => Promise<unknown>): Promise<void> => {
    await run().catch(onLost);
  };
  while (!signal.aborted) {
    await attempt(() => schedule(cluster));
    await attempt(() => autoscaler.runOnce());
    await sleep(scanMs, undefined, { signal }).catch(() => undefined);
  }
  await autoscaler.settled();
}
