import type { Pod } from '../apis/wire.ts';
import type { Cluster, Gate } from '../kube/gate/gate.ts';
import type { Interceptor } from '../kube/gate/interceptor.ts';
import { foreignEndpoint } from '../kube/client/config.ts';
import type { Endpoint } from '../kube/client/endpoint.ts';
import type { ListWatch } from '../kube/client/list-watch.ts';
import { nodes } from '../kube/client/resource.ts';
import type { Member } from './process/lifecycle.ts';
import type { CachingProcess } from './cached/kind.ts';
import type { ClusterCachesOptions } from './cluster-caches.ts';
import { accessTo, type ClusterAccess, type ClustersOptions } from './clusters.ts';
import { TargetCluster, type TargetClusterOptions } from './target-cluster.ts';
import { OpenWorkload, type WorkloadCluster } from './workload-cluster.ts';

export type TargetClustersOptions = Omit<ClustersOptions, 'env' | 'impersonate'> &
  Omit<ClusterCachesOptions, 'roleFile'> & {
    readonly process: CachingProcess;
    readonly intercept: Interceptor | undefined;
    /** Namespace of the Services that kubeconfigs of others name without a dot; undefined: such a name is what it is to this host. */
    readonly servicesIn?: string | undefined;
    /**
     * Asked before anything is done with a cluster that others name, whose Namespace kube-system has this UID: rejects while it must not be used.
     * The text is shown.
     */
    readonly claim?: ((uid: string, secret: string, signal: AbortSignal) => Promise<void>) | undefined;
  };

/** How one is opened that may come and go. */
export interface OpenTargetOptions {
  /** Name of the Secret that has the kubeconfig. */
  readonly secret: string;
  /** Asked before each of its writes. */
  readonly gate: Gate;
  /** Told whenever its state may have changed. */
  readonly changed: () => void;
}

/** The role of Machinist in each of them; see deploy/rbac. */
const ROLE_FILE = 'deploy/rbac/target.yaml';

/**
 * The clusters in which Machines become Nodes: that of the flags, and those that others name, which come and go while the process runs. Of these
 * none is waited for, and what one does not answer concerns only those whose Nodes are in it.
 */
export class TargetClusters implements Member {
  readonly name = 'workload clusters';
  readonly #options: TargetClustersOptions;
  readonly #clusters = new Map<Cluster, TargetCluster>();
  readonly #open = new Map<Cluster, OpenWorkload>();
  readonly #closing = new Set<Promise<unknown>>();
  #isStopped = false;

  constructor(options: TargetClustersOptions) {
    this.#options = options;
  }

  /**
   * Adds one for good; only before the start. Its caches are started with the others of the process, but with `later`, see
   * TargetClusterOptions.
   */
  add(access: ClusterAccess, roleFile: string, later?: TargetClusterOptions['later']): TargetCluster {
    const added = TargetCluster.cached(access, { ...this.#options, roleFile, ...(later && { later }) });
    this.#clusters.set(access.cluster, added);
    return added;
  }

  /** Adds one that others have too, who start and end it. */
  share(target: TargetCluster): void {
    this.#clusters.set(target.access.cluster, target);
  }

  /** The same for an API server of which only the endpoint is known, under a name that no other has. */
  addEndpoint(
    cluster: Cluster,
    endpoint: Endpoint,
    roleFile: string,
    later: TargetClusterOptions['later'],
  ): TargetCluster {
    return this.add(this.#accessTo(cluster, endpoint), roleFile, later);
  }

  /**
   * Opens the way to the API server of a kubeconfig of a foreign hand, under a name that no other has. Throws ConfigError, and Error
   * while one of that name is open, and when all were stopped.
   */
  async open(cluster: Cluster, kubeconfig: string, options: OpenTargetOptions): Promise<WorkloadCluster> {
    const { clock, servicesIn: namespace } = this.#options;
    const endpoint = await foreignEndpoint({ content: { kubeconfig, namespace }, clock });
    // Before anything is started, which nobody would stop; nothing is awaited from here on.
    if (this.#isStopped) throw new Error('no cluster is opened any more');
    if (this.#clusters.has(cluster)) throw new Error(`cluster ${cluster} is already open`);
    const opened = new OpenWorkload(this.#accessTo(cluster, endpoint), {
      ...this.#options,
      ...options,
      roleFile: ROLE_FILE,
    });
    this.#clusters.set(cluster, opened.cluster);
    this.#open.set(cluster, opened);
    return {
      target: opened.target,
      get state() {
        return opened.state;
      },
      close: () => this.#close(cluster, opened),
    };
  }

  /** Asks again for those that are used; one that must not be any more is unreachable until it may. Throws ApiError. */
  async claimAgain(signal: AbortSignal): Promise<void> {
    await Promise.all([...this.#open.values()].map((opened) => opened.claimAgain(signal)));
  }

  /** Why some that are open must not be used. */
  get claimProblems(): readonly string[] {
    return [...this.#open.values()].flatMap(({ claimProblem }) => claimProblem ?? []);
  }

  /** The pods of a Node of one of them. Throws when there is no such cluster (any more). */
  podsOn(cluster: Cluster, nodeName: string): ListWatch<Pod> {
    const target = this.#clusters.get(cluster);
    if (target === undefined) throw new Error(`cluster ${cluster} has no access to pods`);
    return target.podsOn(nodeName);
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const [cluster, opened] of this.#open) this.#close(cluster, opened);
    await Promise.all(this.#closing);
  }

  #accessTo(cluster: Cluster, endpoint: Endpoint): ClusterAccess {
    return accessTo(endpoint, { ...this.#options, cluster, probe: { resource: nodes, namespace: undefined } });
  }

  #close(cluster: Cluster, opened: OpenWorkload): void {
    if (this.#open.get(cluster) !== opened) return;
    this.#open.delete(cluster);
    this.#clusters.delete(cluster);
    const closing = opened.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}
