import type { Pod } from '../apis/wire.ts';
import { reachPresent } from '../cache/reach-present.ts';
import { podsOnNode } from '../drain/node-pods.ts';
import type { Cluster, Gate } from '../gate/gate.ts';
import type { Interceptor } from '../gate/interceptor.ts';
import { NODE_INDEXES, VOLUME_ATTACHMENT_INDEXES } from '../indexes/machine-indexes.ts';
import { foreignEndpoint } from '../kube/config.ts';
import type { ApiError } from '../kube/errors.ts';
import { HttpListWatch, type ListWatch } from '../kube/list-watch.ts';
import { namespaces, nodes, pods, volumeAttachments } from '../kube/resource.ts';
import type { Member } from '../process/lifecycle.ts';
import type { Target } from '../targets/targets.ts';
import { trimNode, trimVolumeAttachment } from '../targets/trim.ts';
import { ClusterCaches, type ClusterCachesOptions } from './cluster-caches.ts';
import { accessTo, type ClusterAccess, type ClustersOptions, writerTo } from './clusters.ts';
import { probesOf } from './probes.ts';

/** Whether what is known of a cluster is of the present; `sinceMs` (monotonic): when it was, for the last time. */
export type WorkloadState =
  | {
      readonly kind: 'reached';
      /** UID of its Namespace kube-system, which tells it from others. */
      readonly identity: string;
    }
  | { readonly kind: 'unreachable'; readonly why: string; readonly sinceMs: number };

/** The way to a cluster in which some Machines have their Nodes, until it is closed. */
export interface WorkloadCluster {
  readonly target: Target;
  readonly state: WorkloadState;
  close(): void;
}

/** How one is opened. */
export interface WorkloadOptions {
  /** Asked before each of its writes. */
  readonly gate: Gate;
  /** Told whenever its state may have changed. */
  readonly changed: () => void;
}

export type WorkloadClustersOptions = Omit<ClustersOptions, 'env' | 'impersonate'> &
  Pick<ClusterCachesOptions, 'outages' | 'held' | 'freeze' | 'random'> & {
    readonly intercept: Interceptor | undefined;
  };

/** Pause before what was refused, or not answered, is asked again. */
const AGAIN_MS = 2_000;

/**
 * Clusters that come and go while the process runs, as others name them: none of them is waited for, and what one does not answer concerns nobody
 * but those whose Nodes are in it.
 */
export class WorkloadClusters implements Member {
  readonly name = 'workload clusters';
  readonly #options: WorkloadClustersOptions;
  readonly #open = new Map<Cluster, OpenWorkload>();
  readonly #closing = new Set<Promise<unknown>>();

  constructor(options: WorkloadClustersOptions) {
    this.#options = options;
  }

  /**
   * Opens the way to the API server of a kubeconfig of a foreign hand, under a name that no other has. Throws ConfigError, and Error
   * while one of that name is open.
   */
  async open(cluster: Cluster, kubeconfig: string, options: WorkloadOptions): Promise<WorkloadCluster> {
    const { clock } = this.#options;
    const endpoint = await foreignEndpoint({ content: kubeconfig, clock });
    // Before anything is started, which nobody would stop; nothing is awaited from here on.
    if (this.#open.has(cluster)) throw new Error(`cluster ${cluster} is already open`);
    const probe = { resource: nodes, namespace: undefined };
    const opened = new OpenWorkload(accessTo(endpoint, { ...this.#options, cluster, probe }), this.#options, options);
    this.#open.set(cluster, opened);
    return {
      target: opened.target,
      get state() {
        return opened.state;
      },
      close: () => this.#close(cluster, opened),
    };
  }

  /** The pods of a Node of one of them; undefined: it is not open. */
  podsOn(cluster: Cluster, nodeName: string): ListWatch<Pod> | undefined {
    const opened = this.#open.get(cluster);
    if (opened === undefined) return undefined;
    const selection = { fieldSelector: podsOnNode(nodeName) };
    return new HttpListWatch({ transport: opened.access.transport, resource: pods, selection });
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  async stop(): Promise<void> {
    for (const [cluster, opened] of this.#open) this.#close(cluster, opened);
    await Promise.all(this.#closing);
  }

  #close(cluster: Cluster, opened: OpenWorkload): void {
    if (this.#open.get(cluster) !== opened) return;
    this.#open.delete(cluster);
    const closing = opened.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}

/** A cache that is filled some time. */
interface Filled {
  waitForSync(signal: AbortSignal): Promise<void>;
}

class OpenWorkload {
  readonly access: ClusterAccess;
  readonly target: Target;
  readonly #options: WorkloadClustersOptions;
  readonly #caches: ClusterCaches;
  readonly #changed: () => void;
  readonly #closing = new AbortController();
  readonly #openedMs: number;
  #refusal: ApiError | undefined;
  #failure: unknown;
  /** Known when all has been read. */
  #identity: string | undefined;

  constructor(access: ClusterAccess, options: WorkloadClustersOptions, { gate, changed }: WorkloadOptions) {
    const { clock, outages, intercept } = options;
    this.access = access;
    this.#options = options;
    this.#changed = changed;
    this.#openedMs = clock.monotonicMs();
    this.#caches = new ClusterCaches(access, { ...options, roleFile: 'deploy/rbac/target.yaml' });
    const refused = (err: ApiError): void => {
      this.#refusal = err;
      changed();
    };
    const nodeCache = this.#caches.open(nodes, { indexes: NODE_INDEXES, transform: trimNode, refused });
    const attachments = this.#caches.open(volumeAttachments, {
      indexes: VOLUME_ATTACHMENT_INDEXES,
      transform: trimVolumeAttachment,
      refused,
    });
    this.target = {
      cluster: access.cluster,
      reader: access.reader,
      writer: writerTo(access, { gate, observer: this.#caches.ownWrites, intercept }),
      nodes: nodeCache.informer,
      volumeAttachments: attachments.informer,
    };
    for (const probed of probesOf([access], [this.#caches])) outages.add(probed, () => changed());
    void this.#read([nodeCache.informer, attachments.informer]);
  }

  get state(): WorkloadState {
    const { outage, silentSinceMs, lastError } = this.#options.outages.state(this.access.cluster) ?? {};
    const sinceMs = silentSinceMs ?? this.#openedMs;
    if (outage !== undefined) return { kind: 'unreachable', why: outage.why, sinceMs };
    if (this.#identity !== undefined) return { kind: 'reached', identity: this.#identity };
    const err = this.#refusal ?? this.#failure;
    const why = err instanceof Error ? err.message : (lastError ?? 'loading is still in progress');
    return { kind: 'unreachable', why, sinceMs };
  }

  /** Resolves when nothing of it runs any more; never rejects. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('no Machine has its Node in the cluster any more'));
    const { access } = this;
    await Promise.allSettled([this.#options.outages.remove(access.cluster), this.#caches.stop()]);
    await Promise.allSettled([access.transport.close()]);
  }

  /** Resolves when the caches show the present, or it is closed; never rejects. */
  async #read(caches: readonly Filled[]): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        await Promise.all(caches.map((cache) => cache.waitForSync(signal)));
        await reachPresent(this.#caches.kinds, signal);
        const { metadata } = await this.access.reader.get(namespaces, { name: 'kube-system' }, { signal });
        this.#identity = metadata.uid;
        return this.#changed();
      } catch (err) {
        if (signal.aborted) return;
        this.#failure = err;
        this.#changed();
        await clock.sleep(AGAIN_MS, signal).catch(() => undefined);
      }
    }
  }
}
