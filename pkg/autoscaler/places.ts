interface OfGroup {
  /** Oldest first. */
  places: string[];
  next: number;
  /** Those that somebody has asked to take back, whether or not that was done. */
  readonly asked: Set<string>;
}

/**
 * Names for the replicas of groups that have no Machine yet, which are alike otherwise. A name lasts: an autoscaler counts how long each has
 * been waited for, and takes back the one that it names and no other. It is never given twice, so a call that is repeated after it was done
 * finds nothing to do.
 *
 * | there are now | then                                                                          |
 * |---------------|-------------------------------------------------------------------------------|
 * | more          | new names are added                                                           |
 * | fewer         | first those go that somebody asked to take back, then the oldest: a Machine came for it |
 *
 * Kept in memory only: another process gives other names, and knows none of these.
 */
export class Places {
  readonly #epoch: string;
  readonly #groups = new Map<string, OfGroup>();

  /** `epoch` tells the names of this process from those of others. */
  constructor(epoch: string) {
    this.#epoch = epoch;
  }

  /** The places of group `uid`, of which there are `count` now. */
  see(uid: string, count: number): readonly string[] {
    const group = this.#groups.get(uid) ?? { places: [], next: 0, asked: new Set() };
    this.#groups.set(uid, group);
    const surplus = group.places.length - count;
    if (surplus > 0) {
      const order = [...group.places.filter((place) => group.asked.has(place)), ...group.places];
      this.#drop(group, [...new Set(order)].slice(0, surplus));
    }
    while (group.places.length < count) group.places.push(`${this.#epoch}-${group.next++}`);
    return group.places;
  }

  /** These are about to be taken back: of fewer places they are the first that are gone. */
  ask(uid: string, places: readonly string[]): void {
    for (const place of places) this.#groups.get(uid)?.asked.add(place);
  }

  take(uid: string, places: readonly string[]): void {
    const group = this.#groups.get(uid);
    if (group !== undefined) this.#drop(group, places);
  }

  forget(uid: string): void {
    this.#groups.delete(uid);
  }

  #drop(group: OfGroup, places: readonly string[]): void {
    const gone = new Set(places);
    group.places = group.places.filter((place) => !gone.has(place));
    for (const place of places) group.asked.delete(place);
  }
}
