import type { HostClock } from '../../pkg/base/clock/host-clock.ts';

interface Timer {
  readonly atMs: number;
  readonly run: () => void;
}

/** The clock of tests: stands still until it is advanced; timers that fall due run in order, at their own time. */
export class FakeClock implements HostClock {
  #monotonicMs = 0;
  #epochMs: number;
  #hostOffsetMs = 0;
  #timers: Timer[] = [];

  constructor(epochMs: number = Date.parse('2026-01-01T00:00:00Z')) {
    this.#epochMs = epochMs;
  }

  now(): number {
    return this.#epochMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  hostWallMs(): number {
    return this.#epochMs + this.#hostOffsetMs;
  }

  schedule(delayMs: number, run: () => void): () => void {
    const timer: Timer = { atMs: this.#monotonicMs + Math.max(delayMs, 0), run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((t) => t !== timer);
    };
  }

  sleep(delayMs: number, signal: AbortSignal): Promise<void> {
    return sleepBy(this, delayMs, signal);
  }

  /** Moves both clocks forward by `ms`, running the timers that fall due on the way. */
  advance(ms: number): void {
    const untilMs = this.#monotonicMs + ms;
    for (;;) {
      const due = this.#timers.filter((t) => t.atMs <= untilMs).toSorted((a, b) => a.atMs - b.atMs)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((t) => t !== due);
      this.#move(due.atMs - this.#monotonicMs);
      due.run();
    }
    this.#move(untilMs - this.#monotonicMs);
  }

  /**
   * Like `advance`, but lets promises that hang on the timers settle in between, so that loops which sleep go round. Needs
   * real timers: it waits for turns of the event loop.
   */
  async advanceAsync(ms: number): Promise<void> {
    const untilMs = this.#monotonicMs + ms;
    await turns();
    for (;;) {
      const nextMs = Math.min(...this.#timers.map((t) => t.atMs));
      if (nextMs > untilMs) break;
      this.advance(Math.max(0, nextMs - this.#monotonicMs));
      await turns();
    }
    this.advance(untilMs - this.#monotonicMs);
    await turns();
  }

  /** Moves only the host's own wall clock: a suspended host (its monotonic clock stands still), or a set clock. */
  jumpHostWall(ms: number): void {
    this.#hostOffsetMs += ms;
  }

  /** Takes `epochMs` as the present wall time, as SystemClock does; the host's own wall clock stays. */
  reanchor(epochMs: number): void {
    this.#hostOffsetMs -= epochMs - this.#epochMs;
    this.#epochMs = epochMs;
  }

  #move(ms: number): void {
    this.#monotonicMs += ms;
    this.#epochMs += ms;
  }
}

/** A few turns of the event loop: enough for chains of promises, also those that cross setImmediate. */
async function turns(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Sleeps by the timers of a clock that a test moves. */
export function sleepBy(clock: Pick<HostClock, 'schedule'>, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const cancel = clock.schedule(delayMs, () => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    });
    const onAbort = (): void => {
      cancel();
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
