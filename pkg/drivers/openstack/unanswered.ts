import type { Clock } from '../../base/clock/clock.ts';
import { type Answer, NoAnswerError } from './answer.ts';

/** Longer than any request may go unanswered and still make something. */
const FORGET_MS = 3_600_000;

/**
 * Requests for ports and floating IPs that were not answered: what they make may still appear, and nothing in the cloud says so before. Kept
 * in memory only; of what processes before this one have asked for Tenure knows how long that may be.
 */
export class UnansweredRequests {
  readonly #clock: Clock;
  /** When the last one ended, by the description of what it makes; monotonic. */
  readonly #endedMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The answer to a request that makes something with that description; remembers it when there is none. */
  async during(description: string, signal: AbortSignal, request: () => Promise<Answer>): Promise<Answer> {
    try {
      const answer = await request();
      // From what stands in front of the service, which may work on.
      if (answer.status > 500) this.#note(description);
      return answer;
    } catch (err) {
      if (signal.aborted || (err instanceof NoAnswerError && err.wasSent)) this.#note(description);
      throw err;
    }
  }

  /** How long something with that description may still appear. */
  leftMs(description: string, answerMs: number): number {
    const endedMs = this.#endedMs.get(description) ?? -Infinity;
    return Math.max(0, endedMs + answerMs - this.#clock.monotonicMs());
  }

  #note(description: string): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [one, endedMs] of this.#endedMs) if (nowMs - endedMs > FORGET_MS) this.#endedMs.delete(one);
    this.#endedMs.set(description, nowMs);
  }
}
