import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { KubeObject } from '../../apis/meta.ts';
import type { Resource } from '../../apis/resource.ts';
import type { Informer } from '../../kube/cache/lister.ts';
import { indexesByNamespace, NamespaceViews } from '../../kube/cache/namespace-views.ts';
import type { Views } from '../../kube/cache/view.ts';
import { WholeViews } from '../../kube/cache/whole-views.ts';
import { Outages } from '../../kube/gate/outages.ts';
import { machines, secrets } from '../../kube/client/resource.ts';
import type { CacheAdder, CachingProcess } from '../cached/kind.ts';
import { addCaches, type Caches } from '../caches.ts';
import { MACHINE_INDEXES } from '../indexes/machine-indexes.ts';
import type { ManagerProcess } from '../manager-process.ts';
import type { World } from '../world.ts';
import type { CellCaches, CellControl, ReadingCell } from './cell-caches.ts';
import { OpenedCaches } from './opened-caches.ts';

/** Indexes of Machines by what a Node shows of its own. */
const NODE_OWNER_INDEXES = Object.keys(MACHINE_INDEXES);

/** What cells read of the control cluster. */
export interface SharedCachesOptions {
  /** What decides which kinds a cell needs. */
  readonly caching: CachingProcess;
  readonly worlds: readonly World[];
  /** Cells have one target: Machines that may have a Node are found in all namespaces. */
  readonly hasOneTarget: boolean;
  /** Told what handlers of changes throw. */
  readonly failed: (resource: Resource<KubeObject>, err: unknown) => void;
}

/**
 * The caches of the control cluster that all cells share: one watch of each kind, of which each cell sees its namespace; of kinds that no
 * namespace has, all.
 */
export class SharedCaches implements CellCaches {
  // eslint-disable-next-line typescript/no-explicit-any -- by resource, so that each has the type of its own
  readonly #views = new Map<Resource<any>, Views<any>>();
  readonly #process: ManagerProcess;
  readonly #informers = new Map<Resource<KubeObject>, Informer<KubeObject>>();
  readonly #opened: OpenedCaches;
  readonly #worlds: readonly World[];
  /** Of Machines in all namespaces. */
  readonly #everywhere: WholeViews<Machine> | undefined;

  /** Adds the kinds that a cell needs to those of the control cluster; only before these start. */
  constructor(process: ManagerProcess, { caching, worlds, hasOneTarget, failed }: SharedCachesOptions) {
    const { ofControl: control } = process;
    this.#process = process;
    this.#worlds = worlds;
    this.#opened = new OpenedCaches(control, failed);
    const adder: CacheAdder = {
      add: (resource, { namespace: _all, indexes, ...how }) => {
        const told = (err: unknown): void => failed(resource, err);
        const across = new Set(hasOneTarget && resource.plural === machines.plural ? NODE_OWNER_INDEXES : []);
        const informer = control.add(resource, {
          ...how,
          ...(resource.namespaced ? { indexes: indexesByNamespace(indexes, across) } : indexes && { indexes }),
        });
        this.#views.set(
          resource,
          resource.namespaced ? new NamespaceViews(informer, told, across) : new WholeViews(informer, told),
        );
        this.#informers.set(resource, informer);
        return informer;
      },
    };
    const cached = addCaches(adder, { process: caching, worlds });
    this.#everywhere = hasOneTarget ? new WholeViews(cached.machines, (err) => failed(machines, err)) : undefined;
  }

  open({ config, caching, log, metrics }: ReadingCell): CellControl {
    const { options, outages: shared, ofControl } = this.#process;
    const { clock } = options;
    const { statusCheckPeriodMs: periodMs, statusCheckTimeoutMs: timeoutMs } = config.safety;
    const outages = new Outages({ clock, log, metrics: metrics.gate, periodMs, timeoutMs, shared });
    return {
      outages,
      caches: this.#of(caching),
      everywhere: this.#everywhere?.of(caching.namespace),
      openCache: (resource, { refused }) => this.#opened.open(resource, caching.namespace, refused),
      ofControl,
    };
  }

  #of(process: CachingProcess): Caches {
    const { namespace } = process;
    const adder: CacheAdder = {
      add: <T extends KubeObject>(resource: Resource<T>): Informer<T> => this.#viewIn(resource, namespace),
    };
    return addCaches(adder, { process, worlds: this.#worlds });
  }

  onSecret(names: readonly string[], changed: (namespace: string) => void): void {
    this.#informers.get(secrets)?.onChange((old, current) => {
      const { namespace, name = '' } = (current ?? old)?.metadata ?? {};
      if (namespace !== undefined && names.includes(name)) changed(namespace);
    });
  }

  secretsIn(namespace: string): Informer<KubeObject> {
    return this.#viewIn(secrets, namespace);
  }

  /** How many Machines a namespace has, those of other APIs included. */
  machinesIn(namespace: string): number {
    const counts = this.#machineKinds.map((kind) => this.#views.get(kind)?.of(namespace).list().length ?? 0);
    return counts.reduce((sum, count) => sum + count, 0);
  }

  ownMachinesIn(namespace: string): readonly Machine[] {
    return this.#viewIn(machines, namespace).list();
  }

  withMachines(): readonly string[] {
    const all = this.#machineKinds.flatMap((kind) => this.#informers.get(kind)?.list() ?? []);
    return [...new Set(all.flatMap(({ metadata }) => metadata.namespace ?? []))].toSorted();
  }

  get #machineKinds(): readonly Resource<KubeObject>[] {
    return [machines, ...this.#worlds.flatMap((world) => world.machines ?? [])];
  }

  #viewIn<T extends KubeObject>(resource: Resource<T>, namespace: string): Informer<T> {
    const views: Views<T> | undefined = this.#views.get(resource);
    if (views === undefined) throw new Error(`${resource.plural} are not cached for cells`);
    return views.of(namespace);
  }

  forget(namespace: string): void {
    for (const views of this.#views.values()) views.forget(namespace);
    this.#everywhere?.forget(namespace);
    this.#opened.forget(namespace);
  }
}
