import type { Clock } from '../../base/clock/clock.ts';

/**
 * Where the creations of an owner stand. waiting: some that we asked for are not seen yet; a pass neither creates nor
 * deletes. needsLiveCheck: that has lasted too long; each of `names` has to be read live, and reported by `settled`.
 */
export type Expectation =
  | { readonly kind: 'satisfied' }
  | { readonly kind: 'waiting'; readonly names: readonly string[]; readonly checkInMs: number }
  | { readonly kind: 'needsLiveCheck'; readonly names: readonly string[] };

/** After this a live read decides what the watch did not show. */
const PATIENCE_MS = 5 * 60_000;
const satisfied: Expectation = Object.freeze({ kind: 'satisfied' });

/**
 * Creations that were asked for and are not seen yet, by name. They guard against creating twice when the answer of a POST
 * was lost or the cache is behind. They never expire into action: time alone satisfies nothing.
 *
 * Owners are named by UID, so that a re-created owner starts without expectations.
 */
export class Expectations {
  readonly #clock: Clock;
  /** By owner: name → when it was asked for. */
  readonly #owners = new Map<string, Map<string, number>>();

  constructor(parts: { clock: Clock }) {
    this.#clock = parts.clock;
  }

  /**
   * Takes note of a creation. Must be called before the POST is sent. What it returns is called when the server has surely refused that one:
   * of an earlier POST of the same name, whose answer was lost, this says nothing, and the name goes on to be expected since that.
   */
  expect(owner: string, name: string): () => void {
    const names = this.#owners.get(owner) ?? new Map<string, number>();
    const earlierMs = names.get(name);
    names.set(name, this.#clock.monotonicMs());
    this.#owners.set(owner, names);
    return () => {
      const sinceMs = names.get(name);
      if (earlierMs === undefined) this.settled(owner, name);
      else if (sinceMs !== undefined) names.set(name, Math.min(earlierMs, sinceMs));
    };
  }

  /** `name` is decided: the cache shows it, the server has answered, or a live read found it or found it absent. */
  settled(owner: string, name: string): void {
    const names = this.#owners.get(owner);
    names?.delete(name);
    if (names?.size === 0) this.#owners.delete(owner);
  }

  /** What `owner` has asked for and is not decided. */
  names(owner: string): readonly string[] {
    return [...(this.#owners.get(owner)?.keys() ?? [])];
  }

  /** Settles every name that `isCached` shows, and says where the rest stands. */
  check(owner: string, isCached: (name: string) => boolean): Expectation {
    for (const name of this.#owners.get(owner)?.keys() ?? []) if (isCached(name)) this.settled(owner, name);
    const names = this.#owners.get(owner);
    if (names === undefined) return satisfied;

    const nowMs = this.#clock.monotonicMs();
    const overdue = [...names].filter(([, sinceMs]) => nowMs - sinceMs >= PATIENCE_MS).map(([name]) => name);
    if (overdue.length > 0) return { kind: 'needsLiveCheck', names: overdue };
    const oldestMs = Math.min(...names.values());
    return { kind: 'waiting', names: [...names.keys()], checkInMs: oldestMs + PATIENCE_MS - nowMs };
  }

  /** The cluster was set back, and what was asked for may never have happened: a live read decides now. */
  doubt(): void {
    for (const names of this.#owners.values()) for (const name of names.keys()) names.set(name, -Infinity);
  }

  forget(owner: string): void {
    this.#owners.delete(owner);
  }
}
