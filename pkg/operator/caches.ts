import type { KubeObject } from '../apis/meta.ts';
import type { Node } from '../apis/wire.ts';
import type { Informer } from '../cache/lister.ts';
import { roleFiles } from '../preflight/permissions.ts';
import { CLUSTER_API_KINDS } from './cached/cluster-api.ts';
import { IRONCORE_KINDS } from './cached/ironcore.ts';
import type { CachedKind, CachingProcess } from './cached/kind.ts';
import { MIRANTIS_KINDS } from './cached/mirantis.ts';
import { OWN_KINDS } from './cached/own.ts';
import { TARGET_KINDS, TARGET_NODES } from './cached/target.ts';
import { ClusterCaches, type ClusterCachesOptions } from './cluster-caches.ts';
import type { Clusters } from './clusters.ts';
import { qualified } from './describe-refusal.ts';

/** Which kinds are cached, and what their caches are made with. */
export interface CachesOptions extends CachingProcess, Omit<ClusterCachesOptions, 'roleFile'> {}

const CONTROL_KINDS = { ...OWN_KINDS, ...MIRANTIS_KINDS, ...CLUSTER_API_KINDS, ...IRONCORE_KINDS };

type Informers<Kinds> = {
  readonly [Name in keyof Kinds]: Kinds[Name] extends CachedKind<infer T> ? Informer<T> : never;
};

/**
 * All that controllers read from caches, with every index that anybody needs, by the names of the tables in `cached/`. Reading one that this
 * process does not have throws.
 */
export interface Caches extends Informers<typeof CONTROL_KINDS>, Informers<typeof TARGET_KINDS> {
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
  { namespace, leaseNamespace, leases, isAutoscaled, controllers, clusterAPIEverywhere, ...common }: CachesOptions,
): Caches {
  const process = { namespace, leaseNamespace, leases, isAutoscaled, controllers, clusterAPIEverywhere };
  const files = roleFiles(process);
  const ofControl = new ClusterCaches(clusters.control, { ...common, roleFile: files.control });
  const ofTarget = clusters.target && new ClusterCaches(clusters.target, { ...common, roleFile: files.target });
  const caches: Partial<Caches> = {
    ofControl,
    ofTarget,
    all: ofTarget === undefined ? [ofControl] : [ofControl, ofTarget],
    nodes: ofTarget && TARGET_NODES.addTo(ofTarget, process),
  };
  addKinds(caches, CONTROL_KINDS, (kind) => kind.addTo(ofControl, process));
  addKinds(caches, TARGET_KINDS, (kind) => ofTarget && kind.addTo(ofTarget, process));
  return caches as Caches;
}

function addKinds(
  caches: object,
  kinds: Readonly<Record<string, CachedKind<KubeObject>>>,
  add: (kind: CachedKind<KubeObject>) => Informer<KubeObject> | undefined,
): void {
  for (const [name, kind] of Object.entries(kinds)) {
    const informer = add(kind);
    Object.defineProperty(caches, name, {
      get() {
        if (informer !== undefined) return informer;
        throw new Error(`${qualified(kind.resource)} are cached only if a controller needs them`);
      },
    });
  }
}
