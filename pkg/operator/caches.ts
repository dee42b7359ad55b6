import type { KubeObject } from '../apis/meta.ts';
import type { Node } from '../apis/wire.ts';
import type { Informer } from '../cache/lister.ts';
import { roleFiles } from '../preflight/permissions.ts';
import type { AlsoRead, CachingProcess, Informers, KindTable, ProcessRole } from './cached/kind.ts';
import { OWN_KINDS } from './cached/own.ts';
import { TARGET_KINDS, TARGET_NODES } from './cached/target.ts';
import { ClusterCaches, type ClusterCachesOptions } from './cluster-caches.ts';
import type { Clusters } from './clusters.ts';
import { qualified } from './describe-refusal.ts';
import type { World } from './world.ts';

/** Which kinds are cached, and what their caches are made with. */
export interface CachesOptions extends ProcessRole, Omit<ClusterCachesOptions, 'roleFile'> {
  readonly worlds: readonly World[];
}

/**
 * All that controllers read from caches, with every index that anybody needs, by the names of the tables in `cached/`. Reading one that this
 * process does not have throws.
 */
export interface Caches extends Informers<typeof OWN_KINDS>, Informers<typeof TARGET_KINDS> {
  /** Those of the kinds of another API, by its table. Throws when the process was not told of it. */
  of<Kinds extends KindTable>(kinds: Kinds): Informers<Kinds>;
  /** Of the target cluster; undefined without one. */
  readonly nodes: Informer<Node> | undefined;
  /** Those that are read from the control cluster. */
  readonly ofControl: ClusterCaches;
  /** Those that are read from the target cluster, if there is one. */
  readonly ofTarget: ClusterCaches | undefined;
  /** Both, to be started and stopped. */
  readonly all: readonly ClusterCaches[];
}

/** The caches that a process needs; nothing is read before they are started. */
export function cachesFor(
  clusters: Clusters,
  {
    namespace,
    leaseNamespace,
    leases,
    isAutoscaled,
    controllers,
    clusterAPIEverywhere,
    worlds,
    ...common
  }: CachesOptions,
): Caches {
  const itself = { namespace, leaseNamespace, leases, isAutoscaled, controllers, clusterAPIEverywhere };
  const process = { ...itself, alsoRead: alsoReadBy(worlds, itself) };
  const files = roleFiles(itself, worlds);
  const ofControl = new ClusterCaches(clusters.control, { ...common, roleFile: files.control });
  const ofTarget = clusters.target && new ClusterCaches(clusters.target, { ...common, roleFile: files.target });
  const tables = new Map<KindTable, object>();
  const caches = {
    ofControl,
    ofTarget,
    all: ofTarget === undefined ? [ofControl] : [ofControl, ofTarget],
    nodes: ofTarget && TARGET_NODES.addTo(ofTarget, process),
    of(kinds: KindTable) {
      const table = tables.get(kinds);
      if (table === undefined) throw new Error(`${Object.keys(kinds).join(', ')} are of no world of this process`);
      return table;
    },
  };
  addKinds(caches, OWN_KINDS, ofControl, process);
  for (const { kinds } of worlds) tables.set(kinds, addKinds({}, kinds, ofControl, process));
  addKinds(caches, TARGET_KINDS, ofTarget, process);
  return caches as unknown as Caches;
}

/** What the worlds of a process read of ours. */
export function alsoReadBy(worlds: readonly World[], process: ProcessRole): AlsoRead {
  return Object.assign({}, ...worlds.map(({ alsoReads }) => alsoReads?.(process) ?? {})) as AlsoRead;
}

/** Adds those kinds of a table that the process needs. Reading another one throws. */
function addKinds<T extends object>(
  caches: T,
  kinds: KindTable,
  cluster: ClusterCaches | undefined,
  process: CachingProcess,
): T {
  for (const [name, kind] of Object.entries(kinds)) {
    const informer: Informer<KubeObject> | undefined = cluster && kind.addTo(cluster, process);
    Object.defineProperty(caches, name, {
      get() {
        if (informer !== undefined) return informer;
        throw new Error(`${qualified(kind.resource)} are cached only if a controller needs them`);
      },
    });
  }
  return caches;
}
