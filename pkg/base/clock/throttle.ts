/** Admits one request at a time to a limited rate. */
export interface Throttle {
  /**
   * Resolves when a request may be sent; rejects with the signal's reason when it is aborted first. `flow`: for whom it is sent, where some
   * take turns.
   */
  acquire(signal: AbortSignal, flow?: string): Promise<void>;
  /** Ends the timer that refills. Whoever waits, or comes later, is told ThrottleClosedError. */
  close(): Promise<void>;
}

export class ThrottleClosedError extends Error {
  override readonly name = 'ThrottleClosedError';

  constructor() {
    super('requests are no longer sent');
  }
}

/** No limit: what the other side says when it is asked too much is what slows us down. */
export const unlimited: Throttle = {
  async acquire(signal) {
    signal.throwIfAborted();
  },
  close: () => Promise.resolve(),
};

/** Bottleneck refills in steps of 250 ms. */
const REFILL_MS = 250;

/**
 * A token bucket of `burst` requests, refilled at `qps` a second; 0 = off. The library behind it admits about 400 a second
 * at most, so a higher limit is met all the same. Who gives up while waiting still uses up a token.
 */
export function createThrottle({ qps, burst }: { readonly qps: number; readonly burst: number }): Throttle {
  if (qps <= 0) return unlimited;

  const limiter = import('bottleneck').then(
    ({ default: Bottleneck }) =>
      new Bottleneck({
        reservoir: Math.max(burst, 1),
        reservoirIncreaseAmount: (qps * REFILL_MS) / 1_000,
        reservoirIncreaseInterval: REFILL_MS,
        reservoirIncreaseMaximum: Math.max(burst, 1),
      }),
  );
  const waiting = new Set<(err: Error) => void>();
  let isClosed = false;
  return {
    async acquire(signal) {
      signal.throwIfAborted();
      const bucket = await limiter;
      if (isClosed) throw new ThrottleClosedError();
      const turn = bucket.schedule(() => Promise.resolve());
      await abortable(turn, signal, waiting);
    },
    async close() {
      const bucket = await limiter;
      isClosed = true;
      for (const refuse of waiting) refuse(new ThrottleClosedError());
      // Its timer keeps a process alive as long as anybody waits for a turn.
      await bucket.disconnect(false);
    },
  };
}

/** The promise's end or the signal's, whichever comes first, or what ends those that wait; the library knows no signals. */
function abortable(promise: Promise<void>, signal: AbortSignal, waiting: Set<(err: Error) => void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    waiting.add(reject);
    const left = (): void => {
      waiting.delete(reject);
      signal.removeEventListener('abort', abort);
    };
    promise.then(resolve, reject).finally(left);
  });
}
