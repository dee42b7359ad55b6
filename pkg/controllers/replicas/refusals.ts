import { type Clock, MINUTE_MS } from '../../base/clock/clock.ts';
import type { Random } from '../../base/random/random.ts';
import { messageOf } from '../../driver/errno.ts';
import { ApiError, isDenial } from '../../kube/client/errors.ts';
import { Backoff } from '../../work/workqueue/backoff.ts';
import { isWorthReporting } from '../machine-facts/node-refusal.ts';
import { atOnce } from './at-once.ts';
import { describeRefusedChange } from './refused-change.ts';

/** How long what has refused is left alone. */
const RETRIES = { baseMs: 5_000, maxMs: 5 * MINUTE_MS };
/** What nobody asked for so long after it was due is forgotten. */
const FORGET_AFTER_MS = 10 * MINUTE_MS;
/** How many objects are changed side by side. */
const CHANGES_AT_ONCE = 20;

interface Refusal {
  readonly owner: string;
  readonly times: number;
  readonly notBeforeMs: number;
  readonly text: string | undefined;
}

/** One change of each of some objects, of which any may be refused. */
export interface ObjectChanges<T> {
  /** Who comes back for those that refuse. */
  readonly owner: string;
  readonly idOf: (object: T) => string;
  readonly nameOf: (object: T) => string;
  readonly change: (object: T) => Promise<unknown>;
  /** Any other error is thrown when all were tried. By default what is worth reporting is a refusal, and told unless it may be over the next time. */
  readonly isRefusal?: (err: unknown) => boolean;
}

/** An object that refused a change, and what was answered. */
export interface RefusedChange {
  readonly name: string;
  readonly cause: unknown;
}

interface Refused extends RefusedChange {
  /** It is to be told, and nothing was told of this object before. */
  readonly isNew: boolean;
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

  /**
   * Changes the objects that are due, side by side: one that refuses stops neither the others nor what comes after them. `tell` is given
   * those that did, also before another error is thrown.
   */
  async changeEach<T>(
    objects: readonly T[],
    { owner, idOf, nameOf, change, isRefusal }: ObjectChanges<T>,
    tell: (refused: readonly Refused[]) => void = () => {},
  ): Promise<void> {
    const refused: Refused[] = [];
    const due = objects.filter((object) => this.isDue(idOf(object)));
    const changed = atOnce(CHANGES_AT_ONCE, due, async (object) => {
      const id = idOf(object);
      try {
        await change(object);
        this.delete(id);
      } catch (cause) {
        if (!(isRefusal ?? isWorthReporting)(cause)) throw cause;
        // What fails once, as in a change of etcd's leader, is no refusal.
        const isTold = isRefusal !== undefined || isDenial(cause) || this.has(id);
        refused.push({ name: nameOf(object), cause, isNew: isTold && this.textOf(id) === undefined });
        this.#add(owner, id, isTold ? describe(cause) : undefined);
      }
    });
    await changed.finally(() => tell(refused));
  }

  has(uid: string): boolean {
    return this.#refusals.has(uid);
  }

  isDue(uid: string): boolean {
    return (this.#refusals.get(uid)?.notBeforeMs ?? 0) <= this.#clock.monotonicMs();
  }

  /** It has refused once more, and what is told of that. `owner` is who comes back for it. */
  #add(owner: string, uid: string, text: string | undefined): void {
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

function describe(cause: unknown): string {
  return cause instanceof ApiError ? describeRefusedChange(cause) : messageOf(cause);
}
