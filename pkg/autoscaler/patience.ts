import type { Clock } from '../base/clock/clock.ts';

const FIRST_MS = 20;
const LONGEST_MS = 2_000;
/** Who has not come for so long begins anew. */
const FORGOTTEN_MS = 10_000;

/** How long those wait who come again and again: each time twice as long. */
export class Patience {
  readonly #clock: Clock;
  readonly #last = new Map<string, { readonly atMs: number; readonly waitMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** For `who` that has come now. */
  waitMs(who: string): number {
    const nowMs = this.#clock.monotonicMs();
    const last = this.#last.get(who);
    const isAgain = last !== undefined && nowMs - last.atMs - last.waitMs < FORGOTTEN_MS;
    const waitMs = isAgain ? Math.min(2 * last.waitMs, LONGEST_MS) : FIRST_MS;
    this.#last.set(who, { atMs: nowMs, waitMs });
    return waitMs;
  }

  forget(who: string): void {
    this.#last.delete(who);
  }
}
