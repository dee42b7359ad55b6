import { expired, tooLarge } from './failure.ts';
import { keyOf, type StoredObject } from './stored-object.ts';

/** One write. */
export interface Change {
  readonly rv: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: StoredObject;
  /** Before it; undefined for what was created. */
  readonly previous: StoredObject | undefined;
}

/** The objects of one kind, with what they were before. */
export class History {
  #current = new Map<string, StoredObject>();
  #changes: Change[] = [];
  /** The current ones in their order, until the next change. */
  #listed: readonly StoredObject[] | undefined;

  get(key: string): StoredObject | undefined {
    return this.#current.get(key);
  }

  /** Ordered by key, as etcd lists them. */
  list(): readonly StoredObject[] {
    return (this.#listed ??= sorted(this.#current));
  }

  get size(): number {
    return this.#current.size;
  }

  add(change: Change): void {
    this.#listed = undefined;
    const key = keyOf(change.object.metadata);
    if (change.type === 'DELETED') this.#current.delete(key);
    else this.#current.set(key, change.object);
    this.#changes.push(change);
  }

  /** As it was after the write of that resourceVersion. */
  listAt(rv: number): readonly StoredObject[] {
    const objects = new Map(this.#current);
    for (let i = this.#changes.length - 1; i >= 0; i--) {
      const { rv: at, object, previous } = this.#changes[i]!;
      if (at <= rv) break;
      const key = keyOf(object.metadata);
      if (previous === undefined) objects.delete(key);
      else objects.set(key, previous);
    }
    return sorted(objects);
  }

  /** What happened after that resourceVersion. */
  since(rv: number): readonly Change[] {
    let from = this.#changes.length;
    while (from > 0 && this.#changes[from - 1]!.rv > rv) from -= 1;
    return this.#changes.slice(from);
  }

  /** All of it, by key. */
  get current(): ReadonlyMap<string, StoredObject> {
    return this.#current;
  }

  /** Becomes what a backup has; what happened since never has. */
  restore(backup: ReadonlyMap<string, StoredObject>): void {
    this.#listed = undefined;
    this.#current = new Map(backup);
    this.#changes = [];
  }

  /** Forgets what happened up to that resourceVersion. */
  compact(rv: number): void {
    this.#changes = this.#changes.filter((change) => change.rv > rv);
  }
}

function sorted(objects: ReadonlyMap<string, StoredObject>): StoredObject[] {
  return [...objects].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
}

/** The resourceVersions that a server has given out, and how far back it remembers. */
export class Revisions {
  #current: number;
  #compacted = 0;

  constructor(first: number) {
    this.#current = first;
  }

  get current(): number {
    return this.#current;
  }

  get compacted(): number {
    return this.#compacted;
  }

  next(): number {
    return (this.#current += 1);
  }

  /** Goes on from an earlier one, of whose past nothing is remembered. */
  restore(rv: number): void {
    this.#current = rv;
    this.#compacted = rv;
  }

  compact(rv: number): void {
    this.#compacted = Math.max(this.#compacted, rv);
  }

  /** Throws a Failure for a list as of a resourceVersion that is forgotten, or of the future. */
  requireKnown(rv: number): void {
    if (rv > this.#current) throw tooLarge(rv, this.#current);
    if (rv < this.#compacted) {
      throw expired('The resourceVersion for the provided list is too old.');
    }
  }
}
