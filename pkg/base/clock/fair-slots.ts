import { Turns } from './turns.ts';

/** So many may have something at once, for which flows take turns. */
export class FairSlots {
  readonly #turns = new Turns();
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  /** Resolves with a slot, which is free again when it is disposed of; rejects with the signal's reason. */
  async acquire(signal: AbortSignal, flow: string): Promise<Disposable> {
    signal.throwIfAborted();
    // While one is free, nobody waits.
    if (this.#free > 0) this.#free -= 1;
    else await this.#turns.wait(signal, flow);
    return { [Symbol.dispose]: () => this.#release() };
  }

  /** Refuses all who wait for one. */
  refuse(err: unknown): void {
    this.#turns.refuse(err);
  }

  #release(): void {
    if (!this.#turns.grant()) this.#free += 1;
  }
}
