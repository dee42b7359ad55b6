import type { Clock } from './clock.ts';

interface Timer {
  readonly atMs: number;
  readonly run: () => void;
}

/** The clock of tests: stands still until it is advanced; timers that fall due run in order, at their own time. */
export class FakeClock implements Clock {
  #monotonicMs = 0;
  #epochMs: number;
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

  schedule(delayMs: number, run: () => void): () => void {
    const timer: Timer = { atMs: this.#monotonicMs + Math.max(delayMs, 0), run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((t) => t !== timer);
    };
  }

  sleep(delayMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error);
      const cancel = this.schedule(delayMs, () => {
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

  /** Moves only the wall clock, as an administrator or NTP would. */
  jumpWall(ms: number): void {
    this.#epochMs += ms;
  }

  #move(ms: number): void {
    this.#monotonicMs += ms;
    this.#epochMs += ms;
  }
}
