import { type Clock, MINUTE_MS } from '../../base/clock/clock.ts';
import type { Random } from '../../base/random/random.ts';
import { isDenial } from '../../kube/client/errors.ts';
import { Backoff } from '../../work/workqueue/backoff.ts';

/** How long what has refused is left alone. */
const RETRIES = { baseMs: 5_000, maxMs: 5 * MINUTE_MS };
/** What nobody asked for so long after it was due is forgotten. */
const FORGET_AFTER_MS = 10 * MINUTE_MS;

interface Refusal {
  readonly owner: string;
  readonly times: number;
  readonly notBeforeMs: number;
  readonly text: string | undefined;
}

/**
 * Remembers what has refused a change, by UID: it is left alone for a while that doubles with each refusal, up to five minutes, and then tried
 * again for as long as somebody asks.
 */
export class Refusals {
  readonly #clock: Clock;
  readonly #backoff: Backoff;
  readonly #refusals = new Map<string, Refusal>();

  constructor({ clock, random }: { readonly clock: Clock; readonly random?: Random | undefined }) {
    this.#clock = clock;
    this.#backoff = new Backoff({ ...RETRIES, random });
  }

  has(uid: string): boolean {
    return this.#refusals.has(uid);
  }

  /** Whether an error is to be told: what fails once, as in a change of etcd's leader, is no refusal. */
  isToTell(uid: string, err: unknown): boolean {
    return isDenial(err) || this.has(uid);
  }

  isDue(uid: string): boolean {
    return (this.#refusals.get(uid)?.notBeforeMs ?? 0) <= this.#clock.monotonicMs();
  }

  /** It has refused once more, and what is told of that. `owner` is who comes back for it. */
  add(owner: string, uid: string, text?: string): void {
    const times = (this.#refusals.get(uid)?.times ?? 0) + 1;
    const notBeforeMs = this.#clock.monotonicMs() + this.#backoff.delayMs(times);
    this.#refusals.set(uid, { owner, times, notBeforeMs, text });
  }

  textOf(uid: string): string | undefined {
    return this.#refusals.get(uid)?.text;
  }

  delete(uid: string): void {
    this.#refusals.delete(uid);
  }

  /** After how many milliseconds the first of `owner` is tried again; undefined when none waits. */
  dueInMs(owner: string): number | undefined {
    const nowMs = this.#clock.monotonicMs();
    let soonest: number | undefined;
    for (const [uid, refusal] of this.#refusals) {
      const waitMs = refusal.notBeforeMs - nowMs;
      if (waitMs < -FORGET_AFTER_MS) this.#refusals.delete(uid);
      // Who is due and was not asked for is not wanted any more.
      if (refusal.owner !== owner || waitMs <= 0) continue;
      soonest = Math.min(soonest ?? waitMs, waitMs);
    }
    return soonest;
  }
}
