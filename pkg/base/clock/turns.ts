interface Waiting {
  readonly signal: AbortSignal;
  readonly granted: () => void;
  readonly refused: (err: unknown) => void;
}

/**
 * Those who wait for something of which there is too little: flows take turns, so that one with thousands of requests lets one with a single
 * request go first, as API Priority and Fairness does on the other side. Within a flow, first come is first served.
 */
export class Turns {
  /** In the order of their turns. */
  readonly #flows = new Map<string, Waiting[]>();

  get isEmpty(): boolean {
    return this.#flows.size === 0;
  }

  /** Resolves when it is granted; rejects with the signal's reason, and as `refuse` is told. */
  async wait(signal: AbortSignal, flow: string): Promise<void> {
    signal.throwIfAborted();
    const turn = Promise.withResolvers<void>();
    const abort = (): void => turn.reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    const waiting: Waiting = { signal, granted: turn.resolve, refused: turn.reject };
    const same = this.#flows.get(flow);
    if (same === undefined) this.#flows.set(flow, [waiting]);
    else same.push(waiting);
    try {
      await turn.promise;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  /** Grants the next turn; false if nobody waits. One that gave up has used no turn up. */
  grant(): boolean {
    for (const [flow, waiting] of this.#flows) {
      this.#flows.delete(flow);
      const first = waiting.findIndex(({ signal }) => !signal.aborted);
      const left = first === -1 ? [] : waiting.slice(first + 1);
      if (left.length > 0) this.#flows.set(flow, left);
      if (first === -1) continue;
      waiting[first]?.granted();
      return true;
    }
    return false;
  }

  /** Refuses all who wait. */
  refuse(err: unknown): void {
    const all = [...this.#flows.values()].flat();
    this.#flows.clear();
    for (const { refused } of all) refused(err);
  }
}
