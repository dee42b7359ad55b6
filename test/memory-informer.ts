import type { KubeObject } from '../pkg/apis/meta.ts';
import { keyOf } from '../pkg/apis/meta.ts';
import type { ChangeHandler, Informer } from '../pkg/kube/cache/lister.ts';
import { type CacheChange, Store, type IndexFunctions } from '../pkg/kube/cache/store.ts';
import type { ObjectIdentity } from '../pkg/kube/client/client.ts';

/** A cache that a test fills; it tells of changes as the real one does, and never of a first list. */
export class MemoryInformer<T extends KubeObject> implements Informer<T> {
  readonly hasSynced: boolean = true;
  readonly resourceVersion = '1';
  readonly #store: Store<T>;
  readonly #handlers: ChangeHandler<T>[] = [];
  readonly #ofDeliveries: ChangeHandler<T>[] = [];

  constructor(objects: readonly T[] = [], indexes: IndexFunctions<T> = {}) {
    this.#store = new Store(indexes);
    for (const object of objects) this.#store.put(object);
  }

  get(key: string): T | undefined {
    return this.#store.get(key);
  }

  list(): readonly T[] {
    return this.#store.list();
  }

  byIndex(index: string, value: string): readonly T[] {
    return this.#store.byIndex(index, value);
  }

  onChange(handler: ChangeHandler<T>): void {
    this.#handlers.push(handler);
  }

  onDelivered(handler: ChangeHandler<T>): void {
    this.#ofDeliveries.push(handler);
  }

  waitFor(): Promise<void> {
    return Promise.resolve();
  }

  wrote(object: T): void {
    for (const change of this.#store.put(object)) this.#tell(this.#handlers, change);
  }

  deleted({ metadata }: ObjectIdentity): void {
    for (const change of this.#store.remove(keyOf({ metadata }))) this.#tell(this.#handlers, change);
  }

  /** What the watch delivers. */
  put(object: T): void {
    this.#tell(this.#ofDeliveries, { old: this.#store.get(keyOf(object)), current: object });
    this.wrote(object);
  }

  remove(key: string): void {
    const old = this.#store.get(key);
    if (old === undefined) return;
    this.#tell(this.#ofDeliveries, { old, current: undefined });
    this.deleted(old);
  }

  #tell(handlers: readonly ChangeHandler<T>[], { old, current }: CacheChange<T>): void {
    for (const handler of handlers) handler(old, current);
  }
}
