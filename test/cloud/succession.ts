import type { CrashPoint } from './crash-point.ts';
import type { InProcessManager } from './manager.ts';

/** Starts one manager. */
export type Start = () => Promise<InProcessManager>;

/** A manager that dies at its crash point, and the one after it. */
export class Succession implements AsyncDisposable {
  readonly #first: InProcessManager;
  #second: Promise<InProcessManager> | undefined;
  #isOver = false;
  /** Rejects when the second one could not be started; never resolves. */
  readonly failed: Promise<never>;

  private constructor(crash: CrashPoint, first: InProcessManager, next: Start) {
    this.#first = first;
    this.failed = this.#follow(crash, next);
    // Anyone who does not wait for it is told by what does not happen then.
    this.failed.catch(() => undefined);
  }

  /** Starts the first one; the second follows by itself. */
  static async start(crash: CrashPoint, first: Start, next: Start): Promise<Succession> {
    return new Succession(crash, await first(), next);
  }

  /** Ends both, also one that was just being started: the work may be over before its successor stands. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#first.abandon();
    const second = await this.#second?.catch(() => undefined);
    await second?.abandon();
  }

  async #follow(crash: CrashPoint, next: Start): Promise<never> {
    await crash.died;
    if (!this.#isOver) {
      void this.#first.abandon();
      this.#second = next();
      await this.#second;
    }
    return await new Promise<never>(() => undefined);
  }
}
