import { keyOf, type KubeObject } from '../../apis/meta.ts';
import type { ObjectIdentity } from '../client/client.ts';
import { compareResourceVersions } from './resource-version.ts';
import { Store, type CacheChange, type IndexFunctions } from './store.ts';

/** One of our writes that the watch has not delivered yet; readers see its answer, or nothing if we deleted that since. */
interface Pending<T> {
  readonly resourceVersion: string;
  /** What the watch delivered last for this key: what readers would see without our write. */
  delivered: T | undefined;
}

/** UIDs remembered as gone; a UID never comes back, so the bound only saves memory. */
const MAX_BURIED = 4_096;

/**
 * The view that readers have of a watched collection: what the watch has delivered, overlaid by the answers of our own
 * writes. An overlay ends when the watch delivers that object at an equal or later resourceVersion, or proves by a later
 * resourceVersion of any object (a resource's watch is in order) that it has nothing to deliver. A UID that we deleted is
 * hidden from then on, whatever is still under way.
 *
 * Every mutating method returns the changes that readers see.
 */
export class WrittenStore<T extends KubeObject> {
  readonly #view: Store<T>;
  readonly #pending = new Map<string, Pending<T>>();
  /** UIDs known to be gone although the watch may still speak of them; oldest first. */
  readonly #buried = new Set<string>();
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

  /** What the watch or a list has delivered last, without our own writes since; undefined for what we have deleted. */
  delivered(key: string): T | undefined {
    const pending = this.#pending.get(key);
    return pending === undefined ? this.#view.get(key) : pending.delivered;
  }

  /** The server was set back: what we wrote and deleted may never have happened. */
  forgetWrites(): void {
    this.#pending.clear();
    this.#buried.clear();
  }

  /** Takes a whole list, as of `resourceVersion`. A list older than what was delivered means that the server was set back. */
  replace(items: readonly T[], resourceVersion: string): CacheChange<T>[] {
    if (this.#delivered !== undefined && compareResourceVersions(resourceVersion, this.#delivered) < 0) {
      this.forgetWrites();
    }
    this.#delivered = resourceVersion;

    const listed = new Map<string, T>();
    for (const item of items) if (!this.#buried.has(item.metadata.uid)) listed.set(keyOf(item), item);
    for (const [key, pending] of this.#pending) {
      if (compareResourceVersions(pending.resourceVersion, resourceVersion) <= 0) this.#pending.delete(key);
      else pending.delivered = listed.get(key);
    }
    const changes: CacheChange<T>[] = [];
    for (const key of this.#view.keys()) {
      if (!listed.has(key) && !this.#pending.has(key)) changes.push(...this.#view.remove(key));
    }
    for (const [key, item] of listed) if (!this.#pending.has(key)) changes.push(...this.#view.put(item));
    return changes;
  }

  deliver(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T): CacheChange<T>[] {
    const { uid, resourceVersion } = object.metadata;
    const changes: CacheChange<T>[] = [];
    if (!this.#buried.has(uid))
      changes.push(...this.#settle(keyOf(object), type === 'DELETED' ? undefined : object, resourceVersion));
    else if (type === 'DELETED') this.#buried.delete(uid);
    return [...changes, ...this.reach(resourceVersion)];
  }

  /** The watch has delivered everything up to `resourceVersion`. */
  reach(resourceVersion: string): CacheChange<T>[] {
    this.#delivered = resourceVersion;
    const changes: CacheChange<T>[] = [];
    for (const [key, pending] of this.#pending) {
      if (compareResourceVersions(pending.resourceVersion, resourceVersion) > 0) continue;
      this.#pending.delete(key);
      changes.push(...this.#show(key, pending.delivered));
    }
    return changes;
  }

  /** Takes the answer of one of our writes. Ignored when the watch is past it: it would bring back what may be gone. */
  write(object: T): CacheChange<T>[] {
    const key = keyOf(object);
    const { uid, resourceVersion } = object.metadata;
    const seen = this.#view.get(key);
    const pending = this.#pending.get(key);
    const newest = [this.#delivered, seen?.metadata.resourceVersion, pending?.resourceVersion];
    const isOld = newest.some((v) => v !== undefined && compareResourceVersions(resourceVersion, v) <= 0);
    if (isOld || this.#buried.has(uid)) return [];

    // A name is free again only when its last owner is gone.
    if (seen !== undefined && seen.metadata.uid !== uid) this.#bury(seen.metadata.uid);
    const delivered = pending === undefined ? seen : pending.delivered;
    this.#pending.set(key, { resourceVersion, delivered: this.#unlessBuried(delivered) });
    return this.#view.put(object);
  }

  /** Takes the success of one of our DELETEs. */
  delete(object: ObjectIdentity): CacheChange<T>[] {
    const key = keyOf(object);
    const { uid } = object.metadata;
    this.#bury(uid);
    const pending = this.#pending.get(key);
    if (pending !== undefined) pending.delivered = this.#unlessBuried(pending.delivered);
    // The overlay stays, empty: an earlier owner of the name, of which the watch may yet speak, is gone for longer.
    return this.#view.get(key)?.metadata.uid === uid ? this.#view.remove(key) : [];
  }

  /** What the watch says of one key: shown, unless our own write of it is newer. */
  #settle(key: string, current: T | undefined, resourceVersion: string): CacheChange<T>[] {
    const pending = this.#pending.get(key);
    if (pending !== undefined && compareResourceVersions(resourceVersion, pending.resourceVersion) < 0) {
      pending.delivered = current;
      return [];
    }
    this.#pending.delete(key);
    return this.#show(key, current);
  }

  #show(key: string, current: T | undefined): CacheChange<T>[] {
    return current === undefined ? this.#view.remove(key) : this.#view.put(current);
  }

  #unlessBuried(object: T | undefined): T | undefined {
    return object === undefined || this.#buried.has(object.metadata.uid) ? undefined : object;
  }

  #bury(uid: string): void {
    this.#buried.add(uid);
    if (this.#buried.size <= MAX_BURIED) return;
    for (const oldest of this.#buried) {
      this.#buried.delete(oldest);
      return;
    }
  }
}
