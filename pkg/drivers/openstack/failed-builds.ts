import type { Clock } from '../../base/clock/clock.ts';
import { isInErrorUnknown, type Server } from './server.ts';

/** Longer than until the next attempt, which finds what the last one could not remove. */
const FORGET_MS = 3_600_000;

/**
 * Servers whose build has failed before the eyes of the call that had requested them. Where Nova hides whether a server was launched, nothing
 * in the cloud says later that there is nothing on one which could not be removed at once, such as while Cinder is down. Kept in memory only:
 * to the next process it may be one that has run, which is not to be deleted.
 */
export class FailedBuilds {
  readonly #clock: Clock;
  /** When each was seen last, by ID; monotonic. */
  readonly #seenMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** One whose build was only given up, such as one in BUILD for too long, may run yet: the next look tells. */
  note(server: Server): void {
    if (!isInErrorUnknown(server)) return;
    const nowMs = this.#clock.monotonicMs();
    for (const [one, seenMs] of this.#seenMs) if (nowMs - seenMs > FORGET_MS) this.#seenMs.delete(one);
    this.#seenMs.set(server.id, nowMs);
  }

  /**
   * Whether a server is one of them. One that was seen to be anything else, or that was not seen for long, may have run since; a look that shows it
   * in BUILD is of before it had failed.
   */
  has(server: Server): boolean {
    const { id, status } = server;
    const seenMs = this.#seenMs.get(id) ?? -Infinity;
    const isKnown = isInErrorUnknown(server) && this.#clock.monotonicMs() - seenMs <= FORGET_MS;
    if (isKnown) this.note(server);
    else if (status !== 'BUILD') this.#seenMs.delete(id);
    return isKnown;
  }
}
