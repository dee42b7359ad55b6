import type { Lease } from '../../apis/wire.ts';
import { DeadlineError } from '../../base/clock/deadline.ts';
import type { HostClock } from '../../base/clock/host-clock.ts';
import { isTooManyRequests, mayHaveHappened, REFUSAL_PATIENCE_MS } from '../client/errors.ts';
import { renewTimeOf } from './lease.ts';

/** Of an outage of six hours; a write that is not recognised costs the lease duration. */
const MOST_UNANSWERED = 10_000;

/** What became of the writes of our Lease since the last one that was answered. */
export class MissedRenewals {
  readonly #clock: Pick<HostClock, 'monotonicMs'>;
  #error: Error | undefined;
  #wasAway = false;
  /** When the API server began to refuse what it answers, without an end so far. */
  #refusedSinceMs: number | undefined;
  /** `renewTime` of those that were not answered. */
  #unanswered: readonly string[] = [];

  constructor(clock: Pick<HostClock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** Undefined: none has failed. */
  get error(): Error | undefined {
    return this.#error;
  }

  get wasAway(): boolean {
    return this.#wasAway;
  }

  /** Whoever has to see to it needs the words of the API server; a process that was stopped meanwhile has heard none. */
  get why(): string {
    return this.#error === undefined ? '' : `: ${this.#error.message}`;
  }

  /** Whether the API server means it: one that is just starting refuses for a moment, too. */
  get isRefused(): boolean {
    return (
      this.#refusedSinceMs !== undefined && this.#clock.monotonicMs() - this.#refusedSinceMs >= REFUSAL_PATIENCE_MS
    );
  }

  /** `isCutShort`: it had less time than others, so that its end says nothing of a server whose last answer is known. */
  failed(err: unknown, sentMs: number, { isCutShort = false }: { readonly isCutShort?: boolean } = {}): void {
    if (isCutShort && this.#error !== undefined) return;
    this.#error = err instanceof Error ? err : new Error(String(err));
    this.#wasAway ||= isAway(err);
    this.#refusedSinceMs = isAway(err) ? undefined : (this.#refusedSinceMs ?? sentMs);
  }

  /** `lease` may have been written, on top of the last one that was answered. */
  sent(lease: Lease, err: unknown): void {
    if (!wasNotAnswered(err)) return;
    this.#unanswered = [...this.#unanswered, renewTimeOf(lease)].slice(-MOST_UNANSWERED);
  }

  /** The API server refuses us no more, whatever it said. */
  notRefused(): void {
    this.#refusedSinceMs = undefined;
  }

  /** Whether `current` is `lease`, the last one that was answered, or one of those that were not. Somebody's label leaves a renewal as it was. */
  includes(current: Lease, lease: Lease): boolean {
    return [renewTimeOf(lease), ...this.#unanswered].includes(renewTimeOf(current));
  }

  /** One was answered. */
  end(): void {
    this.#error = undefined;
    this.#wasAway = false;
    this.#refusedSinceMs = undefined;
    this.#unanswered = [];
  }
}

/** A write that failed like this may have happened all the same. */
export function wasNotAnswered(err: unknown): boolean {
  return err instanceof DeadlineError || mayHaveHappened(err);
}

/** The API server did not answer, or was not able to work: that says nothing of the Lease. */
function isAway(err: unknown): boolean {
  return wasNotAnswered(err) || isTooManyRequests(err);
}
