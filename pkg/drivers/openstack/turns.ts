import { abortable } from './abortable.ts';

/** Lets one at a time work on a thing, in the order they came. */
export class OneAtATime {
  readonly #last = new Map<string, Promise<void>>();

  /** Rejects with the signal's reason when that is aborted before the turn has come. */
  async take<T>(key: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const { promise: done, resolve } = Promise.withResolvers<void>();
    const mine = this.#behind(before, done);
    this.#last.set(key, mine);
    void this.#forget(key, mine);
    try {
      if (before !== undefined) await abortable(before, signal);
      signal.throwIfAborted();
      return await work();
    } finally {
      resolve();
    }
  }

  /** Ends after everyone before, too: one who gave up waiting lets nobody in. */
  async #behind(before: Promise<void> | undefined, done: Promise<void>): Promise<void> {
    await before;
    await done;
  }

  async #forget(key: string, mine: Promise<void>): Promise<void> {
    await mine;
    if (this.#last.get(key) === mine) this.#last.delete(key);
  }
}
