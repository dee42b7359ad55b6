import type { Clock } from '../../base/clock/clock.ts';
import { abortable, SHARED_MS } from './abortable.ts';

const KEPT_MS = 30_000;

/**
 * Remembers for half a minute what names stand for, so that fifty machines of a class ask once. A failure is not remembered: what was
 * corrected works at once.
 */
export class Memo {
  readonly #clock: Clock;
  readonly #entries = new Map<string, { readonly value: Promise<unknown>; readonly untilMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async get<T>(key: string, signal: AbortSignal, find: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const nowMs = this.#clock.monotonicMs();
    for (const [known, { untilMs }] of this.#entries) if (untilMs <= nowMs) this.#entries.delete(known);
    const known = this.#entries.get(key);
    if (known !== undefined) return (await abortable(known.value, signal)) as T; // of the same key
    const entry = { value: find(AbortSignal.timeout(SHARED_MS)), untilMs: nowMs + KEPT_MS };
    this.#entries.set(key, entry);
    try {
      return await abortable(entry.value, signal);
    } catch (err) {
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
      throw err;
    }
  }
}
