import { ServerError, Status } from './rpc-error.ts';

import type { Mutations } from './mutations.ts';

/** Mutations that can be brought to an end: a Lease is released when the last of them has ended, and none begins any more. */
export class RunningChanges {
  readonly #running = new Set<Promise<unknown>>();
  #isClosed = false;

  /** The same mutations, noted. */
  of(mutations: Mutations): Mutations {
    return {
      increase: (...given) => this.run(() => mutations.increase(...given)),
      delete: (...given) => this.run(() => mutations.delete(...given)),
      decrease: (...given) => this.run(() => mutations.decrease(...given)),
    };
  }

  /** Begins none any more, and resolves when those that run have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#running);
  }

  /** Notes any other change. */
  async run<T>(begin: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new ServerError(Status.UNAVAILABLE, 'this process is stopping; call again');
    const running = begin();
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }
}
