import type { Clock } from '../../base/clock/clock.ts';
import { type Random, secureRandom } from '../../base/random/random.ts';

const FIRST_MS = 800;
const LONGEST_MS = 30_000;
const FORGET_AFTER_MS = 120_000;

/**
 * Pauses between attempts to reach a server: 0.8 s, doubled up to 30 s (or what is said), jittered; forgotten when it was reached, and after 2 min
 * without failure.
 */
export class ReconnectBackoff {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #longestMs: number;
  #failures = 0;
  #lastMs = -Infinity;

  constructor(clock: Clock, options: { readonly random?: Random | undefined; readonly longestMs?: number } = {}) {
    this.#clock = clock;
    this.#random = options.random ?? secureRandom;
    this.#longestMs = options.longestMs ?? LONGEST_MS;
  }

  /** Failures in a row, for the level of log lines. */
  get failures(): number {
    return this.#failures;
  }

  /** The server was reached: the next pause is a first one. */
  reached(): void {
    this.#failures = 0;
  }

  /** Notes a failure and says how long to pause. */
  next(): number {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#lastMs > FORGET_AFTER_MS) this.#failures = 0;
    const delayMs = Math.min(FIRST_MS * 2 ** this.#failures, this.#longestMs) * (0.75 + this.#random() / 2);
    this.#failures += 1;
    // The pause itself is not time without failure.
    this.#lastMs = nowMs + delayMs;
    return delayMs;
  }
}
