import type { Clock } from './clock.ts';

/** Those who wait until something holds. */
export class Waiters {
  readonly #clock: Clock;
  readonly #checks = new Set<() => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Something changed: everyone looks again. */
  notify(): void {
    for (const look of this.#checks) look();
  }

  /** Resolves with true as soon as `holds`, with false after `timeoutMs`; rejects with the signal's reason. */
  until(holds: () => boolean, signal: AbortSignal, timeoutMs = Infinity): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error);
      if (holds()) return resolve(true);
      const end = (settle: () => void): void => {
        this.#checks.delete(look);
        signal.removeEventListener('abort', abort);
        cancelTimer?.();
        settle();
      };
      const look = (): void => {
        if (holds()) end(() => resolve(true));
      };
      const abort = (): void => end(() => reject(signal.reason as Error));
      const cancelTimer = Number.isFinite(timeoutMs)
        ? this.#clock.schedule(timeoutMs, () => end(() => resolve(false)))
        : undefined;
      this.#checks.add(look);
      signal.addEventListener('abort', abort, { once: true });
    });
  }
}
