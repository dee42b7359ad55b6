import { ReconnectBackoff } from '../cache/reconnect-backoff.ts';
import type { Clock } from '../clock/clock.ts';
import { ApiError } from '../kube/errors.ts';
import type { Logger } from '../log/logger.ts';

/** Refusals that no waiting ends. */
const LASTING: ReadonlySet<string> = new Set(['Unauthorized', 'Forbidden', 'NotServed']);

/**
 * Runs `run` until it succeeds: an API server that cannot be asked right now will answer later. Rejects with the signal's
 * reason, with a refusal that would last for ever (permissions, what is not served), and with anything that is no ApiError.
 */
export async function persistently<T>(
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  what: string,
  run: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const backoff = new ReconnectBackoff(clock);
  for (;;) {
    try {
      return await run(signal);
    } catch (err) {
      signal.throwIfAborted();
      if (!(err instanceof ApiError) || LASTING.has(err.reason)) throw err;
      const ms = Math.max(backoff.next(), err.retryAfterMs ?? 0);
      log.warn({ err, ms: Math.round(ms) }, `${what} failed, and is tried again`);
      await clock.sleep(ms, signal);
    }
  }
}
