import type { Clock } from '../../../../base/clock/clock.ts';
import type { PoolRuntime } from '../../runtime/gated-runtime.ts';
import type { RuntimeClass } from '../../runtime/runtime.ts';

/** For so long the classes of a runtime count as it has said them. */
export const CLASSES_MS = 10_000;

/** The classes of runtimes: each is asked once for all Machines that wait. */
export class RuntimeClasses {
  readonly #clock: Clock;
  readonly #byPool = new Map<string, { readonly atMs: number; readonly all: Promise<readonly RuntimeClass[]> }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Throws RuntimeError. */
  async of(poolName: string, runtime: PoolRuntime, signal: AbortSignal): Promise<readonly RuntimeClass[]> {
    const atMs = this.#clock.monotonicMs();
    const last = this.#byPool.get(poolName);
    if (last !== undefined && atMs - last.atMs < CLASSES_MS) return await last.all;
    const all = runtime.classes(signal);
    this.#byPool.set(poolName, { atMs, all });
    try {
      return await all;
    } catch (err) {
      this.#byPool.delete(poolName);
      throw err;
    }
  }
}
