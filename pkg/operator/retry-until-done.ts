import { ReconnectBackoff } from '../kube/cache/reconnect-backoff.ts';
import type { Clock } from '../base/clock/clock.ts';
import type { WorkHold } from '../health/held-work.ts';
import { ApiError, isForbiddenOrNotServed, REFUSAL_PATIENCE_MS } from '../kube/client/errors.ts';
import { type Logger, silentLogger } from '../base/log/logger.ts';
import type { Random } from '../base/random/random.ts';

/** What is waited for is asked so often at least: work is held meanwhile. */
const LONGEST_PAUSE_MS = 5_000;
/** No attempt follows another sooner, though the server has answered somebody else meanwhile. */
const SHORTEST_PAUSE_MS = 500;
/** Failures that are normal while servers start; this one is told, and then each twelfth: about one a minute. */
const FIRST_REPORTED = 3;
const REPORT_EACH = 12;

/** How something is asked again and again. */
export interface Retrying {
  readonly clock: Clock;
  readonly random?: Random | undefined;
  readonly log: Logger;
  readonly hold?: WorkHold;
  /** Resolves when the server has answered anybody since then (monotonic): nobody waits out a pause after no answer any more. */
  readonly answeredSince?: (sinceMs: number, signal: AbortSignal) => Promise<void>;
}

/** A log that takes attempts at level debug only: how they end is told by somebody else. */
export function quiet(log: Logger): Logger {
  return { ...silentLogger, debug: (fields, message) => log.debug(fields, message) };
}

/**
 * Runs `run` until it succeeds: an API server that cannot be asked right now will answer later, and one that is just starting
 * refuses (401, 403, 404) what it grants a second later, so that no refusal is taken for the last word. `hold` shows what it
 * fails with, and is released at the end. Rejects with the signal's reason, and with anything that is no ApiError.
 */
export async function retryUntilDone<T>(
  { clock, log, random, hold, answeredSince }: Retrying,
  what: string,
  run: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const backoff = new ReconnectBackoff(clock, { random, longestMs: LONGEST_PAUSE_MS });
  let wasUnanswered = false;
  for (;;) {
    try {
      const result = await run(signal);
      hold?.release();
      return result;
    } catch (err) {
      signal.throwIfAborted();
      hold?.failed(err);
      if (!(err instanceof ApiError)) throw err;
      const isUnanswered = err.code === 0;
      // A server that is back, and refuses for a moment what it is about to grant, is no worse than one that never failed.
      if (wasUnanswered && !isUnanswered) backoff.reached();
      wasUnanswered = isUnanswered;
      const retryInMs = Math.max(backoff.next(), err.retryAfterMs ?? 0);
      const isTold = backoff.failures === FIRST_REPORTED || backoff.failures % REPORT_EACH === 0;
      log[isTold ? 'warn' : 'debug']({ err, retryInMs, failures: backoff.failures }, `${what} failed, retrying`);
      await pause(clock, retryInMs, isUnanswered ? answeredSince : undefined, signal);
    }
  }
}

async function pause(
  clock: Clock,
  ms: number,
  answeredSince: Retrying['answeredSince'],
  signal: AbortSignal,
): Promise<void> {
  const sinceMs = clock.monotonicMs();
  if (answeredSince === undefined || ms <= SHORTEST_PAUSE_MS) return clock.sleep(ms, signal);
  await clock.sleep(SHORTEST_PAUSE_MS, signal);
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  try {
    await Promise.race([clock.sleep(ms - SHORTEST_PAUSE_MS, either), answeredSince(sinceMs, either)]);
  } finally {
    over.abort(new Error('the pause is over'));
  }
}

/**
 * As `retryUntilDone`, for what a process cannot do without: when the server has refused it (401, 403, not served) for so long
 * that it is not just starting, or for `patienceMs`, rejects with the refusal, for someone to fix.
 */
export async function retryUnlessRefused<T>(
  how: Retrying & { readonly patienceMs?: number },
  what: string,
  run: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const { clock, patienceMs = REFUSAL_PATIENCE_MS } = how;
  let refusedSinceMs: number | undefined;
  const outcome = await retryUntilDone(
    how,
    what,
    async (s) => {
      try {
        return { result: await run(s) };
      } catch (err) {
        if (!isForbiddenOrNotServed(err)) {
          refusedSinceMs = undefined;
          throw err;
        }
        refusedSinceMs ??= clock.monotonicMs();
        if (clock.monotonicMs() - refusedSinceMs < patienceMs) throw err;
        return { refusal: err };
      }
    },
    signal,
  );
  if ('refusal' in outcome) throw outcome.refusal;
  return outcome.result;
}
