import type { Clock } from '../../base/clock/clock.ts';

/** The VM of a CreateMachine call without an answer may appear for so long after the end of the call. */
export const UNANSWERED_MS = 120_000;

/**
 * Until when VMs of a MachineClass may still appear, because CreateMachine calls are under way or were not answered. The Machines of these calls
 * may be gone before that, or refer to another class. A process does not know of the calls of another one.
 */
export class LateVMs {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  /** Monotonic, by the key of the class. */
  readonly #until = new Map<string, number>();
  /** How many calls are under way, by the key of the class. */
  readonly #underWay = new Map<string, number>();

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** A CreateMachine call with this class is being sent. */
  sent(classKey: string): void {
    this.#underWay.set(classKey, (this.#underWay.get(classKey) ?? 0) + 1);
  }

  /** It has ended; a VM of one that was answered shows in lists. */
  ended(classKey: string, wasAnswered: boolean): void {
    const others = (this.#underWay.get(classKey) ?? 0) - 1;
    if (others > 0) this.#underWay.set(classKey, others);
    else this.#underWay.delete(classKey);
    if (!wasAnswered) this.#until.set(classKey, this.#clock.monotonicMs() + UNANSWERED_MS);
  }

  /** Milliseconds until no such VM can appear any more, as far as is known by now; 0: none can. */
  leftMs(classKey: string): number {
    if (this.#underWay.has(classKey)) return UNANSWERED_MS;
    const leftMs = (this.#until.get(classKey) ?? -Infinity) - this.#clock.monotonicMs();
    if (leftMs > 0) return leftMs;
    this.#until.delete(classKey);
    return 0;
  }
}
