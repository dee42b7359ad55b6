import type { Event } from '../../../pkg/apis/wire.ts';
import { compareResourceVersions } from '../../../pkg/kube/cache/resource-version.ts';
import { timeOfEvent } from './view.ts';

/** The latest Events, of any number that are reported. */
export class RecentEvents {
  readonly #most: number;
  readonly #byUID = new Map<string, Event>();

  constructor(most: number) {
    this.#most = most;
  }

  add(event: Event): void {
    this.#byUID.set(event.metadata.uid, event);
    if (this.#byUID.size < 2 * this.#most) return;
    for (const old of this.#sorted().slice(0, -this.#most)) this.#byUID.delete(old.metadata.uid);
  }

  /** Oldest first. */
  list(): readonly Event[] {
    return this.#sorted().slice(-this.#most);
  }

  #sorted(): Event[] {
    const time = new Map([...this.#byUID.values()].map((event) => [event, timeOfEvent(event)]));
    return [...this.#byUID.values()].toSorted((a, b) => {
      const [x = '', y = ''] = [time.get(a), time.get(b)];
      return x < y ? -1 : x > y ? 1 : compareResourceVersions(a.metadata.resourceVersion, b.metadata.resourceVersion);
    });
  }
}
