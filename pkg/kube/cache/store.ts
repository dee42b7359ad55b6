import { keyOf, type KubeObject } from '../../apis/meta.ts';

/** What happened to one object: added (old undefined), updated, deleted (current undefined). */
export interface CacheChange<T> {
  readonly old: T | undefined;
  readonly current: T | undefined;
}

/** Names the values under which an index finds an object. */
export type IndexFunctions<T> = Readonly<Record<string, (object: T) => readonly string[]>>;

interface Index<T> {
  readonly valuesOf: (object: T) => readonly string[];
  readonly byValue: Map<string, Found<T>>;
}

/** The objects of one value, by key. */
interface Found<T> {
  readonly objects: Map<string, T>;
  /** The same as an array, until one of them changes. */
  listed: readonly T[] | undefined;
}

/** Objects by key, with named indexes. One key holds one object; another UID under the same key is another object. */
export class Store<T extends KubeObject> {
  readonly #objects = new Map<string, T>();
  readonly #indexes = new Map<string, Index<T>>();
  #listed: readonly T[] | undefined;

  constructor(indexes: IndexFunctions<T> = {}) {
    for (const [name, valuesOf] of Object.entries(indexes)) this.#indexes.set(name, { valuesOf, byValue: new Map() });
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  keys(): IterableIterator<string> {
    return this.#objects.keys();
  }

  /** All objects; the same array until something changes. */
  list(): readonly T[] {
    this.#listed ??= [...this.#objects.values()];
    return this.#listed;
  }

  /** Objects for which the index function returned `value`; the same array until one of them changes. Throws for an index that was never declared. */
  byIndex(index: string, value: string): readonly T[] {
    const declared = this.#indexes.get(index);
    if (declared === undefined) throw new Error(`index ${index} is not declared`);
    const found = declared.byValue.get(value);
    if (found === undefined) return [];
    found.listed ??= [...found.objects.values()];
    return found.listed;
  }

  /** Stores an object. The same version as before is no change; another UID is a deletion and an addition. */
  put(object: T): CacheChange<T>[] {
    const key = keyOf(object);
    const old = this.#objects.get(key);
    if (old === undefined) return this.#set(key, undefined, object);
    if (old.metadata.uid !== object.metadata.uid) return [...this.remove(key), ...this.#set(key, undefined, object)];
    return old.metadata.resourceVersion === object.metadata.resourceVersion ? [] : this.#set(key, old, object);
  }

  remove(key: string): CacheChange<T>[] {
    const old = this.#objects.get(key);
    if (old === undefined) return [];
    this.#objects.delete(key);
    this.#listed = undefined;
    this.#reindex(key, old, undefined);
    return [{ old, current: undefined }];
  }

  #set(key: string, old: T | undefined, current: T): CacheChange<T>[] {
    this.#objects.set(key, current);
    this.#listed = undefined;
    this.#reindex(key, old, current);
    return [{ old, current }];
  }

  #reindex(key: string, old: T | undefined, current: T | undefined): void {
    for (const { valuesOf, byValue } of this.#indexes.values()) {
      for (const value of old === undefined ? [] : valuesOf(old)) {
        const found = byValue.get(value);
        found?.objects.delete(key);
        if (found !== undefined) found.listed = undefined;
        if (found?.objects.size === 0) byValue.delete(value);
      }
      for (const value of current === undefined ? [] : valuesOf(current)) {
        const found = byValue.get(value) ?? { objects: new Map<string, T>(), listed: undefined };
        found.objects.set(key, current as T);
        found.listed = undefined;
        byValue.set(value, found);
      }
    }
  }
}
