import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

import type { VirtualTime } from '../../test/simulation/world/virtual-clock.ts';

const TURN_MS = 10;
/** What is missed beyond it, while the host stood still, never happens. */
const LONGEST_TURN_MS = 1_000;

/** Lets the time of a world go by `pace` times as fast as the host's, as far as the host can, until the signal is aborted. */
export async function keepPace(time: VirtualTime, pace: number, signal: AbortSignal): Promise<void> {
  let lastMs = performance.now();
  while (!signal.aborted) {
    await sleep(TURN_MS);
    const nowMs = performance.now();
    const passedMs = Math.min(nowMs - lastMs, LONGEST_TURN_MS);
    lastMs = nowMs;
    await time.advance(passedMs * pace, () => signal.aborted);
  }
}
