import type { KubeObject } from '../pkg/apis/meta.ts';
import { keyOf } from '../pkg/apis/meta.ts';
import type { ChangeHandler, Informer } from '../pkg/kube/cache/lister.ts';
import { Store, type IndexFunctions } from '../pkg/kube/cache/store.ts';
import type { ObjectIdentity } from '../pkg/kube/client/client.ts';

/** A cache that a test fills; it tells of changes as the real one does, and never of a first list. */
export class MemoryInformer<T extends KubeObject> implements Informer<T> {
  readonly hasSynced: boolean = true;
  readonly resourceVersion = '1';
  readonly #store: Store<T>;
  readonly #handlers: ChangeHandler<T>[] = [];

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

  waitFor(): Promise<void> {
    return Promise.resolve();
  }

  wrote(object: T): void {
    this.put(object);
  }

  deleted({ metadata }: ObjectIdentity): void {
    this.remove(keyOf({ metadata }));
  }

  /** What the watch delivers. */
  put(object: T): void {
    for (const { old, current } of this.#store.put(object)) this.#tell(old, current);
  }

  remove(key: string): void {
    for (const { old, current } of this.#store.remove(key)) this.#tell(old, current);
  }

  #tell(old: T | undefined, current: T | undefined): void {
    for (const handler of this.#handlers) handler(old, current);
  }
}
