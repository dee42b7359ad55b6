import type { Clock } from '../../base/clock/clock.ts';

/** The VM of a CreateMachine call without an answer may appear for so long after the end of the call. */
export const UNANSWERED_MS = 120_000;

/**
 * Until when VMs of a MachineClass may still appear, because CreateMachine calls were not answered. The Machines of these calls may be gone
 * before that. A process does not know of the calls of another one.
 */
export class LateVMs {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  /** Monotonic, by the key of the class. */
  readonly #until = new Map<string, number>();

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** A CreateMachine call with this class has ended without an answer. */
  unanswered(classKey: string): void {
    this.#until.set(classKey, this.#clock.monotonicMs() + UNANSWERED_MS);
  }

  /** Milliseconds until no such VM can appear any more; 0: none can. */
  leftMs(classKey: string): number {
    const leftMs = (this.#until.get(classKey) ?? -Infinity) - this.#clock.monotonicMs();
    if (leftMs > 0) return leftMs;
    this.#until.delete(classKey);
    return 0;
  }
}
