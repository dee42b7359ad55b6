import type { Clock } from '../../../../base/clock/clock.ts';

/** A creation without an answer may still be carried out for so long. */
export const CREATION_MS = 120_000;
/** For so long a machine that is known, and that the runtime does not show any more, is looked for before it counts as gone. */
const VANISHED_MS = 30_000;
/** The same of a Machine that is being deleted. */
const VANISHED_IN_DELETION_MS = 15_000;
/** The same of one that was told to go: that it is gone is what is expected. */
const VANISHED_AFTER_DELETION_MS = 5_000;

/** What a machine that is not shown any more was about to do. */
export type DeletionIntent = 'stay' | 'go' | 'going';

const CONFIRM_MS: Readonly<Record<DeletionIntent, number>> = {
  stay: VANISHED_MS,
  go: VANISHED_IN_DELETION_MS,
  going: VANISHED_AFTER_DELETION_MS,
};

/** Until when it is not certain that the runtime has no machine for a Machine although it shows none. */
export class Uncertainty {
  readonly #clock: Clock;
  readonly #untilMs = new Map<string, number>();

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  /** A creation is about to be sent. */
  creating(uid: string): void {
    this.#untilMs.set(uid, this.#clock.monotonicMs() + CREATION_MS);
  }

  /**
   * Another process has sent a creation then (wall clock): it may have died of it, or have distrusted what the runtime showed since. What is
   * known here is newer.
   */
  recall(uid: string, sentAtMs: number | undefined, wasDistrusted: boolean): void {
    if (sentAtMs === undefined || this.#untilMs.has(uid)) return;
    const sentMs = CREATION_MS - Math.max(0, this.#clock.now() - sentAtMs);
    const leftMs = Math.max(sentMs, wasDistrusted ? VANISHED_MS : 0);
    if (leftMs > 0) this.#untilMs.set(uid, this.#clock.monotonicMs() + leftMs);
  }

  /** The runtime has said that it has none: it has refused to create it, or has heard that it is to be deleted. */
  certain(uid: string): void {
    this.#untilMs.set(uid, this.#clock.monotonicMs());
  }

  /** A machine that was known is not shown. Counts from the first look. */
  vanished(uid: string, fate: DeletionIntent): void {
    if (this.#untilMs.has(uid)) return;
    this.#untilMs.set(uid, this.#clock.monotonicMs() + CONFIRM_MS[fate]);
  }

  /** What the runtime does not show is not to be trusted: when that has ended, the machine is looked for as if it had just vanished. */
  distrusted(uid: string): void {
    // Not sooner than a creation without an answer is over.
    this.#untilMs.set(uid, Math.max(this.#untilMs.get(uid) ?? 0, this.#clock.monotonicMs() + VANISHED_MS));
  }

  /** The machine is seen, or its Machine is gone. */
  forget(uid: string): void {
    this.#untilMs.delete(uid);
  }

  /** How long it stays uncertain. */
  leftMs(uid: string): number {
    return Math.max(0, (this.#untilMs.get(uid) ?? 0) - this.#clock.monotonicMs());
  }
}
