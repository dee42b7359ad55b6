import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

/** How long and how often to look, and what is waited for. */
export interface EventuallyOptions {
  /** One deadline for everything, two minutes by default: other tests share the host, and a busy one needs several times as long. */
  readonly timeoutMs?: number;
  /** Pause between two looks; by default 25 ms at first and, the longer it takes, up to 200 ms: looks cost the server something. */
  readonly intervalMs?: number;
  /** What is waited for; a function may add what was last seen. */
  readonly describe?: string | (() => string);
}

const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 200;
const GROWTH = 1.2;

/**
 * Calls `look` until it neither throws nor says false, and resolves with what it returned. After the deadline it throws, with
 * the last failure in the message and as cause. A look that hangs is cut off by the deadline as well.
 */
export async function eventually<T>(look: () => T | Promise<T>, options: EventuallyOptions = {}): Promise<T> {
  const { timeoutMs = 120_000, intervalMs } = options;
  const deadlineMs = performance.now() + timeoutMs;
  const last: { failure: unknown } = { failure: new Error('the first look did not end') };
  for (let pauseMs = intervalMs ?? FIRST_PAUSE_MS; ;) {
    const result = await lookOnce(look, last, deadlineMs - performance.now());
    if (result !== undefined) return result.value;
    if (performance.now() + pauseMs >= deadlineMs) throw gaveUp(options, timeoutMs, last.failure);
    await sleep(pauseMs);
    pauseMs = intervalMs ?? Math.min(pauseMs * GROWTH, LONGEST_PAUSE_MS);
  }
}

async function lookOnce<T>(
  look: () => T | Promise<T>,
  last: { failure: unknown },
  leftMs: number,
): Promise<{ value: T } | undefined> {
  const cutOff = new AbortController();
  const deadline = sleep(Math.max(leftMs, 1), undefined, { signal: cutOff.signal }).catch(() => undefined);
  try {
    const result = await Promise.race([
      Promise.resolve()
        .then(look)
        .then((value) => ({ value })),
      deadline,
    ]);
    if (result === undefined) return undefined;
    if (result.value !== false) return result;
    last.failure = new Error('it said false');
  } catch (err) {
    last.failure = err;
  } finally {
    cutOff.abort();
  }
  return undefined;
}

function gaveUp({ describe }: EventuallyOptions, timeoutMs: number, failure: unknown): Error {
  const what = (typeof describe === 'function' ? describe() : describe) ?? 'the condition';
  const why = failure instanceof Error ? failure.message : String(failure);
  return new Error(`waited ${timeoutMs} ms for ${what}; the last failure: ${why}`, { cause: failure });
}
