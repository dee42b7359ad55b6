import type { KubeObject } from '../../apis/meta.ts';
import type { ChangeHandler, Informer } from './lister.ts';
import type { IndexFunctions } from './store.ts';
import { type View, viewOf, type Views } from './view.ts';

/** Index of all objects of a namespace. */
const NAMESPACE_INDEX = 'namespace';

/** Who listens, by namespace. */
type Handlers<T> = Map<string, Set<ChangeHandler<T>>>;

const NONE: ReadonlySet<string> = new Set();

/** Indexes of a cache of all namespaces, by which a view finds only what is in its own, except by those that reach `across` all. */
export function indexesByNamespace<T extends KubeObject>(
  indexes: IndexFunctions<T> = {},
  across: ReadonlySet<string> = NONE,
): IndexFunctions<T> {
  const scoped = Object.entries(indexes).map(([name, valuesOf]) => [
    name,
    across.has(name) ? valuesOf : (object: T) => valuesOf(object).map((value) => within(namespaceOf(object), value)),
  ]);
  return { ...Object.fromEntries(scoped), [NAMESPACE_INDEX]: (object: T) => [namespaceOf(object)] };
}

/** A cache of a kind in all namespaces, of which each reader sees one. Its indexes are those of `indexesByNamespace`. */
export class NamespaceViews<T extends KubeObject> implements Views<T> {
  readonly #informer: Informer<T>;
  readonly #handlers: Handlers<T> = new Map();
  readonly #ofDeliveries: Handlers<T> = new Map();
  readonly #failed: (err: unknown) => void;
  readonly #across: ReadonlySet<string>;

  /** `failed` is told what a handler has thrown, which keeps no other from hearing of a change; `across` as for the indexes. */
  constructor(informer: Informer<T>, failed: (err: unknown) => void, across: ReadonlySet<string> = NONE) {
    this.#informer = informer;
    this.#across = across;
    this.#failed = failed;
    informer.onChange((old, current) => this.#tellAll(this.#handlers, old, current));
    informer.onDelivered((old, current) => this.#tellAll(this.#ofDeliveries, old, current));
  }

  /** What is in a namespace, which may have several readers. A reader of another one neither sees nor hears of it. */
  of(namespace: string): Informer<T> {
    return this.open(namespace).informer;
  }

  /** The same for a reader that ends before the others of the namespace. */
  open(namespace: string): View<T> {
    const informer = this.#informer;
    const prefix = `${namespace}/`;
    const own = new Set<ChangeHandler<T>>();
    const listen = (all: Handlers<T>, handler: ChangeHandler<T>): void => {
      const handlers = all.get(namespace) ?? new Set();
      handlers.add(handler);
      own.add(handler);
      all.set(namespace, handlers);
    };
    const view = viewOf(informer, {
      get: (key) => (key.startsWith(prefix) ? informer.get(key) : undefined),
      list: () => informer.byIndex(NAMESPACE_INDEX, namespace),
      byIndex: (index, value) => informer.byIndex(index, this.#across.has(index) ? value : within(namespace, value)),
      reachesAcross: this.#across.size > 0,
      onChange: (handler) => {
        listen(this.#handlers, handler);
        for (const object of informer.byIndex(NAMESPACE_INDEX, namespace)) this.#tell(handler, undefined, object);
      },
      onDelivered: (handler) => listen(this.#ofDeliveries, handler),
    });
    return {
      informer: view,
      close: () => {
        for (const all of [this.#handlers, this.#ofDeliveries]) {
          const handlers = all.get(namespace);
          for (const handler of own) handlers?.delete(handler);
          if (handlers?.size === 0) all.delete(namespace);
        }
      },
    };
  }

  #tellAll(handlers: Handlers<T>, old: T | undefined, current: T | undefined): void {
    const object = current ?? old;
    if (object === undefined) return;
    for (const handler of handlers.get(namespaceOf(object)) ?? []) this.#tell(handler, old, current);
  }

  #tell(handler: ChangeHandler<T>, old: T | undefined, current: T | undefined): void {
    try {
      handler(old, current);
    } catch (err) {
      this.#failed(err);
    }
  }

  /** Nobody reads a namespace any more: those who listened hear of nothing that happens from now on. */
  forget(namespace: string): void {
    this.#handlers.delete(namespace);
    this.#ofDeliveries.delete(namespace);
  }
}

function namespaceOf({ metadata }: KubeObject): string {
  return metadata.namespace ?? '';
}

/** A namespace has no slash. */
function within(namespace: string, value: string): string {
  return `${namespace}/${value}`;
}
