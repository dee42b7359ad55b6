import type { Clock } from '../../base/clock/clock.ts';

/**
 * A signal that is aborted by its parent or after `delayMs`, whichever comes first. `moreMs` is asked when that time is up: as long as it
 * says more than 0, it goes on for so long. Leaves nothing behind once disposed.
 */
export class Deadline implements Disposable {
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal | undefined;
  #cancelTimer: () => void;
  #expired = false;

  constructor(clock: Clock, delayMs: number, parent: AbortSignal | undefined, moreMs: () => number = () => 0) {
    this.#parent = parent;
    const isUp = (): void => {
      const ms = moreMs();
      if (ms > 0) {
        this.#cancelTimer = clock.schedule(ms, isUp);
        return;
      }
      this.#expired = true;
      this.#controller.abort(new Error('deadline exceeded'));
    };
    this.#cancelTimer = clock.schedule(delayMs, isUp);
    if (parent?.aborted) this.#follow();
    else parent?.addEventListener('abort', this.#follow, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether time ran out, as against an abort of the parent. */
  get expired(): boolean {
    return this.#expired;
  }

  [Symbol.dispose](): void {
    this.#cancelTimer();
    this.#parent?.removeEventListener('abort', this.#follow);
  }

  readonly #follow = (): void => this.#controller.abort(this.#parent?.reason);
}
