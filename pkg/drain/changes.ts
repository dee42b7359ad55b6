import type { Clock } from '../clock/clock.ts';

/** Tells those who wait that something they look at has changed. */
export class Changes {
  readonly #clock: Clock;
  readonly #listeners = new Set<() => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Something changed: every waiter looks again. */
  notify(): void {
    // A set may be changed while it is walked; a waiter that comes meanwhile has looked already.
    for (const listener of this.#listeners) listener();
  }

  /**
   * Resolves with true as soon as `holds` (looked at now and after every change), with false after `timeoutMs`; rejects
   * with the signal's reason.
   */
  until(holds: () => boolean, signal: AbortSignal, timeoutMs = Number.POSITIVE_INFINITY): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error);
      if (holds()) return resolve(true);
      const settle = (act: () => void): void => {
        this.#listeners.delete(look);
        signal.removeEventListener('abort', abort);
        cancelTimer?.();
        act();
      };
      const look = (): void => {
        if (holds()) settle(() => resolve(true));
      };
      const abort = (): void => settle(() => reject(signal.reason as Error));
      const timeout = (): void => settle(() => resolve(false));
      const cancelTimer = Number.isFinite(timeoutMs) ? this.#clock.schedule(timeoutMs, timeout) : undefined;
      this.#listeners.add(look);
      signal.addEventListener('abort', abort, { once: true });
    });
  }
}
