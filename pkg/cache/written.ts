import { keyOf } from '../apis/meta.ts';
import type { KubeObject } from '../apis/meta.ts';
import type { Identity } from '../kube/client.ts';
import { compareResourceVersions } from './resource-version.ts';
import { Store } from './store.ts';
import type { Change, IndexFunctions } from './store.ts';

/** One of our writes that the watch has not delivered yet. */
interface Pending<T> {
  readonly uid: string;
  /** Of the answer; of a deletion, the newest version known before it. */
  readonly resourceVersion: string;
  readonly deletion: boolean;
  /** What the watch delivered last for this key: what readers would see without our write. */
  delivered: T | undefined;
}

/**
 * The view that readers have of a watched collection: what the watch has delivered, overlaid by the answers of our own
 * writes. An overlay ends when the watch delivers that object at an equal or later resourceVersion, or proves by a later
 * resourceVersion of any object (a resource's watch is in order) that it has nothing to deliver. A deletion hides its UID
 * until the watch deletes it.
 *
 * Every mutating method returns the changes that readers see.
 */
export class WrittenStore<T extends KubeObject> {
  readonly #view: Store<T>;
  readonly #pending = new Map<string, Pending<T>>();
  /** Up to which the watch has delivered. */
  #delivered: string | undefined;

  constructor(indexes: IndexFunctions<T> = {}) {
    this.#view = new Store(indexes);
  }

  /** What readers see. */
  get view(): Pick<Store<T>, 'get' | 'list' | 'byIndex' | 'size'> {
    return this.#view;
  }

  /** resourceVersion up to which lists and the watch have delivered; undefined before the first list. */
  get resourceVersion(): string | undefined {
    return this.#delivered;
  }

  /** Takes a whole list, as of `resourceVersion`. A list older than what was delivered means that the server was set back. */
  replace(items: readonly T[], resourceVersion: string): Change<T>[] {
    const setBack = this.#delivered !== undefined && compareResourceVersions(resourceVersion, this.#delivered) < 0;
    if (setBack) this.#pending.clear();
    this.#delivered = resourceVersion;

    const listed = new Map(items.map((item) => [keyOf(item), item]));
    for (const [key, pending] of this.#pending) {
      if (settlesInList(pending, listed.get(key), resourceVersion)) this.#pending.delete(key);
      else pending.delivered = listed.get(key);
    }
    const changes: Change<T>[] = [];
    for (const key of this.#view.keys()) {
      if (!listed.has(key) && !this.#pending.has(key)) changes.push(...this.#view.remove(key));
    }
    for (const [key, item] of listed) if (!this.#pending.has(key)) changes.push(...this.#view.put(item));
    return changes;
  }

  /** Takes one event of the watch. */
  deliver(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T): Change<T>[] {
    const key = keyOf(object);
    const current = type === 'DELETED' ? undefined : object;
    const pending = this.#pending.get(key);
    if (pending !== undefined && !settlesInEvent(pending, type, object)) {
      pending.delivered = current;
      return this.reach(object.metadata.resourceVersion);
    }
    this.#pending.delete(key);
    const changes = current === undefined ? this.#view.remove(key) : this.#view.put(current);
    return [...changes, ...this.reach(object.metadata.resourceVersion)];
  }

  /** The watch has delivered everything up to `resourceVersion`. */
  reach(resourceVersion: string): Change<T>[] {
    this.#delivered = resourceVersion;
    const changes: Change<T>[] = [];
    for (const [key, pending] of this.#pending) {
      if (compareResourceVersions(pending.resourceVersion, resourceVersion) > 0) continue;
      // A deletion has no resourceVersion of its own to wait for; one of an object that was never delivered never will be.
      if (pending.deletion && pending.delivered !== undefined) continue;
      this.#pending.delete(key);
      if (pending.deletion) continue;
      changes.push(...(pending.delivered === undefined ? this.#view.remove(key) : this.#view.put(pending.delivered)));
    }
    return changes;
  }

  /** Takes the answer of one of our writes. Ignored when the watch is past it: it would bring back what may be gone. */
  write(object: T): Change<T>[] {
    const key = keyOf(object);
    const { uid, resourceVersion } = object.metadata;
    if (this.#delivered !== undefined && compareResourceVersions(resourceVersion, this.#delivered) <= 0) return [];
    const seen = this.#view.get(key);
    if (seen !== undefined && compareResourceVersions(resourceVersion, seen.metadata.resourceVersion) <= 0) return [];
    const pending = this.#pending.get(key);
    if (pending?.deletion === true && pending.uid === uid) return [];

    const delivered = pending === undefined ? seen : pending.delivered;
    this.#pending.set(key, { uid, resourceVersion, deletion: false, delivered });
    return this.#view.put(object);
  }

  /** Takes the success of one of our DELETEs. Ignored when readers do not see that UID any more. */
  delete(object: Identity): Change<T>[] {
    const key = keyOf(object);
    const seen = this.#view.get(key);
    if (seen?.metadata.uid !== object.metadata.uid) return [];
    const pending = this.#pending.get(key);
    const { uid, resourceVersion } = seen.metadata;
    const delivered = pending === undefined ? seen : pending.delivered;
    this.#pending.set(key, { uid, resourceVersion, deletion: true, delivered });
    return this.#view.remove(key);
  }
}

/** Whether an event of the watch supersedes our write of the same key. */
function settlesInEvent<T extends KubeObject>(
  pending: Pending<T>,
  type: 'ADDED' | 'MODIFIED' | 'DELETED',
  { metadata }: T,
): boolean {
  const order = compareResourceVersions(metadata.resourceVersion, pending.resourceVersion);
  if (!pending.deletion) return order >= 0;
  return metadata.uid === pending.uid ? type === 'DELETED' : order > 0 && type !== 'DELETED';
}

/** Whether a list as of `resourceVersion` supersedes our write of the same key. */
function settlesInList<T extends KubeObject>(
  pending: Pending<T>,
  item: T | undefined,
  resourceVersion: string,
): boolean {
  const isPast = compareResourceVersions(pending.resourceVersion, resourceVersion) <= 0;
  return isPast && !(pending.deletion && item?.metadata.uid === pending.uid);
}
