import { ServerError, Status } from './rpc-error.ts';

/** Changes that can be brought to an end: a Lease is released when the last of them has ended, and none begins any more. */
export class RunningChanges {
  readonly #running = new Set<Promise<unknown>>();
  #isClosed = false;

  /** Begins none any more, and resolves when those that run have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#running);
  }

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
