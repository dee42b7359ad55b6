import { type Change, History, Revisions } from './history.ts';
import type { Kind } from './kinds.ts';
import { keyOf, type StoredObject } from './stored-object.ts';

/** Told of each write, in the order of resourceVersions. */
export type ChangeListener = (kind: Kind, change: Change) => void;

/** All objects of a server as they were at a moment. */
export interface Backup {
  readonly rv: number;
  readonly objects: ReadonlyMap<Kind, ReadonlyMap<string, StoredObject>>;
}

/** All objects of a server. */
export class Objects {
  readonly revisions: Revisions;
  /** Kinds whose definitions are being deleted: no object of theirs is created. */
  readonly ending = new Set<Kind>();
  readonly #histories = new Map<Kind, History>();
  readonly #listeners = new Set<ChangeListener>();
  readonly #restoreListeners = new Set<() => void>();
  readonly #withdrawalListeners = new Set<(kind: Kind) => void>();
  #isDryRun = false;

  constructor(firstRevision: number) {
    this.revisions = new Revisions(firstRevision);
  }

  of(kind: Kind): History {
    const known = this.#histories.get(kind);
    if (known !== undefined) return known;
    const history = new History();
    this.#histories.set(kind, history);
    return history;
  }

  /** Whether nothing is stored at the moment. */
  get isDryRun(): boolean {
    return this.#isDryRun;
  }

  /** Calls `write`, of which nothing is stored: what it returns is what it would have been. */
  dryRun<T>(write: () => T): T {
    this.#isDryRun = true;
    try {
      return write();
    } finally {
      this.#isDryRun = false;
    }
  }

  /** Stores an object, which gets the next resourceVersion, and returns it as it is stored. */
  put(kind: Kind, object: StoredObject): StoredObject {
    const previous = this.of(kind).get(keyOf(object.metadata));
    return this.#change(kind, object, previous === undefined ? 'ADDED' : 'MODIFIED', previous);
  }

  /** Removes an object, of which `last` is the last state, and returns that. */
  remove(kind: Kind, last: StoredObject): StoredObject {
    return this.#change(kind, last, 'DELETED', this.of(kind).get(keyOf(last.metadata)));
  }

  /** Forgets how objects were before the present. */
  compact(): void {
    this.revisions.compact(this.revisions.current);
    for (const history of this.#histories.values()) history.compact(this.revisions.current);
  }

  backup(): Backup {
    const objects = new Map([...this.#histories].map(([kind, history]) => [kind, new Map(history.current)]));
    return { rv: this.revisions.current, objects };
  }

  /** Goes on from a backup, as etcd does that was restored from one: what was written since has never been. */
  restore({ rv, objects }: Backup): void {
    this.revisions.restore(rv);
    for (const [kind, history] of this.#histories) history.restore(objects.get(kind) ?? new Map());
    const listeners = Array.from(this.#restoreListeners);
    for (const listener of listeners) listener();
  }

  /** Calls `listener` after each `restore`; the returned function removes it. */
  onRestore(listener: () => void): () => void {
    this.#restoreListeners.add(listener);
    return () => void this.#restoreListeners.delete(listener);
  }

  /** Says that a kind, of which there is no object, is served no more. */
  withdraw(kind: Kind): void {
    const listeners = Array.from(this.#withdrawalListeners);
    for (const listener of listeners) listener(kind);
  }

  /** Calls `listener` after each `withdraw`; the returned function removes it. */
  onWithdrawal(listener: (kind: Kind) => void): () => void {
    this.#withdrawalListeners.add(listener);
    return () => void this.#withdrawalListeners.delete(listener);
  }

  /** Adds a listener; the returned function removes it. */
  onChange(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #change(kind: Kind, object: StoredObject, type: Change['type'], previous: StoredObject | undefined): StoredObject {
    if (this.#isDryRun) return withoutEmptyRevision(object);
    const rv = this.revisions.next();
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(rv) } };
    const change = { rv, type, object: stored, previous };
    this.of(kind).add(change);
    // Who begins to listen meanwhile has the change among what there is.
    const listeners = Array.from(this.#listeners);
    for (const listener of listeners) listener(kind, change);
    return stored;
  }
}

/** A new object of a dry run has no resourceVersion. */
function withoutEmptyRevision(object: StoredObject): StoredObject {
  const { resourceVersion, ...metadata } = object.metadata;
  return resourceVersion === '' ? ({ ...object, metadata } as StoredObject) : object;
}
