import type { Clock } from './clock.ts';

export class DeadlineError extends Error {
  override readonly name = 'DeadlineError';
  readonly timeoutMs: number;

  constructor(what: string, timeoutMs: number) {
    super(`${what} took longer than ${Math.round(timeoutMs)} ms`);
    this.timeoutMs = timeoutMs;
  }
}

/**
 * Settles like `promise`, or rejects with the signal's reason as soon as it is aborted. What hangs behind the promise is
 * not stopped: only the waiting is.
 */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    if (onAbort !== undefined) signal.removeEventListener('abort', onAbort);
  }
}

/**
 * Runs `run` with a signal that is aborted after `timeoutMs` (DeadlineError) or together with `parent`. Rejects at that
 * moment, also when `run` does not heed its signal. `what` names it in the error.
 */
export async function withDeadline<T>(
  clock: Clock,
  timeoutMs: number,
  what: string,
  run: (signal: AbortSignal) => Promise<T>,
  parent?: AbortSignal,
): Promise<T> {
  const timeout = new AbortController();
  const cancel = clock.schedule(timeoutMs, () => timeout.abort(new DeadlineError(what, timeoutMs)));
  const signal = parent === undefined ? timeout.signal : AbortSignal.any([timeout.signal, parent]);
  try {
    return await untilAborted(run(signal), signal);
  } finally {
    cancel();
  }
}
