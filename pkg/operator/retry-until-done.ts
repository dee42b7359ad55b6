import { ReconnectBackoff } from '../cache/reconnect-backoff.ts';
import type { Clock } from '../clock/clock.ts';
import type { WorkHold } from '../health/held-work.ts';
import { ApiError, isRefusal, REFUSAL_PATIENCE_MS } from '../kube/errors.ts';
import { type Logger, silentLogger } from '../log/logger.ts';

/** What is waited for is asked so often at least: work is held meanwhile. */
const LONGEST_PAUSE_MS = 5_000;
/** Failures that are normal while servers start; this one is told, and then each twelfth: about one a minute. */
const FIRST_TOLD = 3;
const EACH_TOLD = 12;

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
  { clock, log, hold }: { readonly clock: Clock; readonly log: Logger; readonly hold?: WorkHold },
  what: string,
  run: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const backoff = new ReconnectBackoff(clock, { longestMs: LONGEST_PAUSE_MS });
  for (;;) {
    try {
      const result = await run(signal);
      hold?.release();
      return result;
    } catch (err) {
      signal.throwIfAborted();
      hold?.failed(err);
      if (!(err instanceof ApiError)) throw err;
      const ms = Math.max(backoff.next(), err.retryAfterMs ?? 0);
      const isTold = backoff.failures === FIRST_TOLD || backoff.failures % EACH_TOLD === 0;
      log[isTold ? 'warn' : 'debug']({ err, ms, failures: backoff.failures }, `${what} failed, retrying`);
      await clock.sleep(ms, signal);
    }
  }
}

/**
 * As `retryUntilDone`, for what a process cannot do without: when the server has refused it (401, 403, not served) for so long
 * that it is not just starting, or for `patienceMs`, rejects with the refusal, for someone to fix.
 */
export async function retryUnlessRefused<T>(
  how: { readonly clock: Clock; readonly log: Logger; readonly hold?: WorkHold; readonly patienceMs?: number },
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
        if (!isRefusal(err)) {
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
