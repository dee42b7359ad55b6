import type { Clock } from '../../../base/clock/clock.ts';
import { deletionTimeoutMs, DELETE_TIMEOUT_MS } from '../../../driver/deadlines.ts';
import { DriverError } from '../../../driver/error.ts';

/** So many of the last deletions of an account count. */
const REMEMBERED = 20;
/** Of fewer nobody can tell what is usual. */
const ENOUGH = 3;
/** What took its time so long ago says nothing about the provider as it is now. */
const RECENT_MS = 600_000;
/** A call is compared with the others so often. */
const CHECK_MS = 5_000;

interface Success {
  /** Monotonic. */
  readonly atMs: number;
  readonly tookMs: number;
}

/** How long DeleteMachine usually takes, by account: a call that takes much longer than all others has lost its answer, and is given up. */
export class DeletionTimes {
  readonly #clock: Clock;
  readonly #successes = new Map<string, readonly Success[]>();

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  /**
   * The answer of a deletion. Throws Aborted, as a timeout without answer, when others are answered much sooner; `timeouts`: how often in a row
   * that has happened to this machine.
   */
  async during<T>(
    { account, timeouts, signal }: { account: string; timeouts: number; signal: AbortSignal },
    call: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const startedMs = this.#clock.monotonicMs();
    const overdue = new AbortController();
    let cancel: () => void;
    const check = (): void => {
      const timeoutMs = deletionTimeoutMs(this.#slowestMs(account), timeouts);
      const leftMs = startedMs + timeoutMs - this.#clock.monotonicMs();
      // The deadline of the call itself ends the longest wait.
      if (leftMs <= 0 && timeoutMs < DELETE_TIMEOUT_MS) overdue.abort();
      else cancel = this.#clock.schedule(Math.max(1, Math.min(leftMs, CHECK_MS)), check);
    };
    cancel = this.#clock.schedule(CHECK_MS, check);
    try {
      const answer = await call(AbortSignal.any([signal, overdue.signal]));
      this.#succeeded(account, startedMs);
      return answer;
    } catch (err) {
      if (!overdue.signal.aborted || !DriverError.hasCode(err, 'Canceled')) throw err;
      const options = { unanswered: true, timedOut: true, cause: err };
      throw new DriverError('Aborted', 'DeleteMachine was not answered, although other calls were', options);
    } finally {
      cancel();
    }
  }

  #succeeded(account: string, startedMs: number): void {
    const atMs = this.#clock.monotonicMs();
    const before = this.#successes.get(account) ?? [];
    this.#successes.set(account, [...before.slice(1 - REMEMBERED), { atMs, tookMs: atMs - startedMs }]);
  }

  #slowestMs(account: string): number | undefined {
    const sinceMs = this.#clock.monotonicMs() - RECENT_MS;
    const recent = (this.#successes.get(account) ?? []).filter(({ atMs }) => atMs >= sinceMs);
    return recent.length < ENOUGH ? undefined : Math.max(...recent.map(({ tookMs }) => tookMs));
  }
}
