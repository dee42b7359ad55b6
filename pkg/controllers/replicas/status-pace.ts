import type { Clock } from '../../clock/clock.ts';

/** A status is written at most once in this time; what changes meanwhile goes into the next write. */
const PACE_MS = 250;

/**
 * Keeps a burst of hundreds of Machines from becoming hundreds of status writes of their owner. The first change is
 * written at once; only the telling is delayed, never a decision.
 */
export class StatusPace {
  readonly #clock: Clock;
  readonly #writtenAtMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How long to wait before the status of `key` may be written again. */
  waitMs(key: string): number {
    const writtenMs = this.#writtenAtMs.get(key);
    return writtenMs === undefined ? 0 : Math.max(0, writtenMs + PACE_MS - this.#clock.monotonicMs());
  }

  /** The status of `key` is being written. */
  written(key: string): void {
    this.#writtenAtMs.set(key, this.#clock.monotonicMs());
  }

  /** The object of `key` is gone. */
  forget(key: string): void {
    this.#writtenAtMs.delete(key);
  }
}
