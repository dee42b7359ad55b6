import type { KubeObject } from '../apis/meta.ts';
import type { Pod } from '../apis/wire.ts';
import { podsOnNode } from '../drain/node-pods.ts';
import type { Gate } from '../kube/gate/gate.ts';
import type { Interceptor } from '../kube/gate/interceptor.ts';
import { HttpListWatch, type ListWatch } from '../kube/client/list-watch.ts';
import { pods } from '../kube/client/resource.ts';
import type { Target } from '../kube/targets/targets.ts';
import { addKinds, type CacheAdder, type CachingProcess, type Informers } from './cached/kind.ts';
import { TARGET_KINDS } from './cached/target.ts';
import { ClusterCaches, type ClusterCachesOptions, type OpenOptions } from './cluster-caches.ts';
import { accessFor, type ClusterAccess, writerTo } from './clusters.ts';

/** What is cached of a target cluster, and how. */
export interface TargetClusterOptions extends ClusterCachesOptions {
  readonly process: CachingProcess;
  /** How caches are filled that nobody waits for; without it the process does not start until they are. */
  readonly later?: Pick<OpenOptions<KubeObject>, 'refused' | 'isNeeded'>;
}

/** A cluster in which Machines become Nodes: the way to its API server, and its caches. */
export class TargetCluster {
  readonly access: ClusterAccess;
  readonly caches: ClusterCaches;
  readonly informers: Informers<typeof TARGET_KINDS>;

  private constructor({ access, caches, informers }: Pick<TargetCluster, 'access' | 'caches' | 'informers'>) {
    this.access = access;
    this.caches = caches;
    this.informers = informers;
  }

  /** Makes the caches; with `later` they begin to be filled at once, else when they are started. */
  static cached(access: ClusterAccess, options: TargetClusterOptions): TargetCluster {
    const { process, later } = options;
    const caches = new ClusterCaches(access, options);
    const informers = addKinds(
      TARGET_KINDS,
      later === undefined ? caches : { add: (resource, how) => caches.open(resource, { ...how, ...later }).informer },
      process,
    );
    return new TargetCluster({ access, caches, informers });
  }

  /** The same cluster for one of several, who reads what `caches` shows of these. */
  through(caches: CacheAdder, process: CachingProcess): TargetCluster {
    return new TargetCluster({
      access: accessFor(this.access, process.namespace),
      caches: this.caches,
      informers: addKinds(TARGET_KINDS, caches, process),
    });
  }

  /** What somebody does with it whose writes pass `gate`. */
  behind(gate: Gate, intercept: Interceptor | undefined): Target {
    const { access, caches, informers } = this;
    return {
      cluster: access.cluster,
      reader: access.reader,
      writer: writerTo(access, { gate, observer: caches.ownWrites, intercept }),
      nodes: informers.nodes,
      get volumeAttachments() {
        return informers.volumeAttachments;
      },
    };
  }

  /** The pods of a Node, past the caches: only a drain asks for them. */
  podsOn(nodeName: string): ListWatch<Pod> {
    const { transport } = this.access;
    return new HttpListWatch({ transport, resource: pods, selection: { fieldSelector: podsOnNode(nodeName) } });
  }
}
