import { hrtime } from 'node:process';
import { setTimeout as sleepFor } from 'node:timers/promises';

import type { HostClock } from './host-clock.ts';

/** setTimeout's largest delay; a longer one would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const NS_PER_MS = 1e6;

/** The same in all threads of the process, unlike `performance.now()`. */
function monotonicMs(): number {
  return Number(hrtime.bigint()) / NS_PER_MS;
}

/**
 * The clock of production. `reanchor` moves the wall time when the API servers' `Date` header says that this host's clock
 * was wrong at start; between two anchors a jump of the host's clock has no effect.
 */
export class SystemClock implements HostClock {
  #anchorEpochMs: number;
  #anchorMonotonicMs: number;

  constructor() {
    this.#anchorEpochMs = Date.now();
    this.#anchorMonotonicMs = monotonicMs();
  }

  now(): number {
    return Math.round(this.#anchorEpochMs + monotonicMs() - this.#anchorMonotonicMs);
  }

  monotonicMs(): number {
    return monotonicMs();
  }

  /** The host's own wall clock, jumps included: only the fence compares it (see pkg/kube/gate/fence.ts). */
  hostWallMs(): number {
    return Date.now();
  }

  /** Takes `epochMs` as the present wall time. */
  reanchor(epochMs: number): void {
    this.#anchorEpochMs = epochMs;
    this.#anchorMonotonicMs = monotonicMs();
  }

  schedule(delayMs: number, run: () => void): () => void {
    const timer = setTimeout(run, Math.min(Math.max(delayMs, 0), LONGEST_TIMER_MS));
    timer.unref();
    return () => clearTimeout(timer);
  }

  async sleep(delayMs: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    try {
      await sleepFor(Math.min(Math.max(delayMs, 0), LONGEST_TIMER_MS), undefined, { signal, ref: false });
    } catch (err) {
      signal.throwIfAborted();
      throw err;
    }
  }
}
