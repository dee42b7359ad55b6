import type { HostClock } from '../../base/clock/host-clock.ts';

/** Pauses that can be cut short, one at a time. */
export class Pause {
  readonly #clock: Pick<HostClock, 'sleep'>;
  #woken: AbortController | undefined;
  #isWoken = false;

  constructor(clock: Pick<HostClock, 'sleep'>) {
    this.#clock = clock;
  }

  /** Ends the present pause; between two pauses it is remembered for the next. */
  wake(): void {
    if (this.#woken === undefined) this.#isWoken = true;
    else this.#woken.abort(new Error('woken'));
  }

  /** Waits, or until woken. Rejects with the signal's reason. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    if (this.#isWoken) woken.abort(new Error('woken'));
    this.#isWoken = false;
    this.#woken = woken;
    try {
      await this.#clock.sleep(ms, AbortSignal.any([signal, woken.signal]));
    } catch (err) {
      if (!woken.signal.aborted || signal.aborted) throw err;
    } finally {
      this.#woken = undefined;
    }
  }
}
