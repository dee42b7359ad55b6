import type { KubeObject } from '../../apis/meta.ts';
import type { Resource } from '../../apis/resource.ts';
import type { Informer } from '../../kube/cache/lister.ts';
import { indexesByNamespace, NamespaceViews } from '../../kube/cache/namespace-views.ts';
import { machines, secrets } from '../../kube/client/resource.ts';
import { addKinds, type CacheAdder, type CachingProcess } from '../cached/kind.ts';
import { OWN_KINDS } from '../cached/own.ts';
import type { Caches } from '../caches.ts';
import type { ClusterCaches } from '../cluster-caches.ts';

/** The caches of the control cluster that all cells share: one watch of each kind, of which each cell sees its namespace. */
export class SharedCaches {
  // eslint-disable-next-line typescript/no-explicit-any -- by resource, so that each has the type of its own
  readonly #views = new Map<Resource<any>, NamespaceViews<any>>();
  readonly #informers = new Map<Resource<KubeObject>, Informer<KubeObject>>();

  /** `failed` is told what handlers of changes throw. Adds the kinds that a cell needs to those of the control cluster; only before these start. */
  constructor(
    control: ClusterCaches,
    process: CachingProcess,
    failed: (resource: Resource<KubeObject>, err: unknown) => void,
  ) {
    addKinds(
      OWN_KINDS,
      {
        add: (resource, { namespace: _all, indexes, ...how }) => {
          const informer = control.add(resource, { ...how, indexes: indexesByNamespace(indexes) });
          this.#views.set(resource, new NamespaceViews(informer, (err) => failed(resource, err)));
          this.#informers.set(resource, informer);
          return informer;
        },
      },
      process,
    );
  }

  /** What the controllers of a cell read. */
  of(process: CachingProcess): Caches {
    const { namespace } = process;
    const adder: CacheAdder = {
      add: <T extends KubeObject>(resource: Resource<T>): Informer<T> => this.#viewIn(resource, namespace),
    };
    const none = (): never => {
      throw new Error('a cell serves no other API');
    };
    return Object.defineProperty(addKinds(OWN_KINDS, adder, process), 'of', { value: none }) as Caches;
  }

  /** Calls `changed` with the namespace of each Secret of one of these names that changes from now on. */
  onSecret(names: readonly string[], changed: (namespace: string) => void): void {
    this.#informers.get(secrets)?.onChange((old, current) => {
      const { namespace, name = '' } = (current ?? old)?.metadata ?? {};
      if (namespace !== undefined && names.includes(name)) changed(namespace);
    });
  }

  /** Metadata of the Secrets of a namespace. */
  secretsIn(namespace: string): Informer<KubeObject> {
    return this.#viewIn(secrets, namespace);
  }

  /** How many Machines a namespace has. */
  machinesIn(namespace: string): number {
    return this.#viewIn(machines, namespace).list().length;
  }

  #viewIn<T extends KubeObject>(resource: Resource<T>, namespace: string): Informer<T> {
    const views: NamespaceViews<T> | undefined = this.#views.get(resource);
    if (views === undefined) throw new Error(`${resource.plural} are not cached for cells`);
    return views.of(namespace);
  }

  /** A cell has ended. */
  forget(namespace: string): void {
    for (const views of this.#views.values()) views.forget(namespace);
  }
}
