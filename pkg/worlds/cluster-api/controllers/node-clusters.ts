import { createHash } from 'node:crypto';

import type { ClusterAPICluster } from '../api/cluster.ts';
import { HAD_KUBECONFIG_ANNOTATION, KUBECONFIG_SECRET_SUFFIX, NODE_CLUSTER_ANNOTATION } from '../api/keys.ts';
import { keyOf, type KubeObject } from '../../../apis/meta.ts';
import type { Informer } from '../../../kube/cache/lister.ts';
import type { Clock } from '../../../base/clock/clock.ts';
import type { Reader } from '../../../kube/client/client.ts';
import { ConfigError } from '../../../kube/client/config-error.ts';
import { secrets as secretResource } from '../../../kube/client/resource.ts';
import type { WorkloadCluster } from '../../../operator/workload-cluster.ts';
import type { Target } from '../../../kube/targets/targets.ts';

/**
 * The cluster in which the Nodes of a Cluster's Machines are. reached: what its caches show is the present; without an identity it is the
 * target cluster of the manager. unreachable: nothing about its Nodes is known any more; `sinceMs` (monotonic) when it was, for the last time;
 * `lostSinceMs`, since when nothing leads to it, because its API server does not answer or its Secret is missing; undefined: it may well answer.
 */
export type NodeCluster =
  | { readonly kind: 'reached'; readonly target: Target; readonly identity: string | undefined }
  | {
      readonly kind: 'unreachable';
      readonly why: string;
      readonly sinceMs: number;
      readonly lostSinceMs: number | undefined;
    }
  | { readonly kind: 'none' };

export interface NodeClustersDeps {
  /** Metadata only. */
  readonly secrets: Informer<KubeObject>;
  readonly reader: Reader;
  readonly clock: Clock;
  /** Of the manager; undefined: it has none. */
  readonly target: Target | undefined;
  /** Opens the way to the API server of a kubeconfig, which a Secret has. Throws ConfigError. */
  readonly open: (
    cluster: string,
    source: { readonly secret: string; readonly kubeconfig: string },
    changed: () => void,
  ) => Promise<WorkloadCluster>;
}

interface Entry {
  /** Of the Cluster, `namespace/name`. */
  readonly key: string;
  readonly users: Set<string>;
  readonly secretName: string;
  /** Of the Secret that is open, or is being opened. */
  version: string | undefined;
  hash: string | undefined;
  open: WorkloadCluster | undefined;
  wasOpen: boolean;
  problem: string | undefined;
  /** Since when there is no connection; a kubeconfig that was of no use from the beginning has lost none. */
  lostMs: number;
  /** Since when there is no Secret, if there is none. */
  missingMs: number | undefined;
}

/** A Secret that could not be read is read again. */
const READ_AGAIN_MS = 5_000;

/**
 * Where the Nodes of Machines are: in the cluster of Secret `<cluster>-kubeconfig`, for as long as there is one, else in the target cluster of the
 * manager. A connection lives from the first Machine of a Cluster to the last, and is made anew when the content of the Secret changes.
 */
export class NodeClusters {
  readonly #deps: NodeClustersDeps;
  readonly #entries = new Map<string, Entry>();
  readonly #clusterOf = new Map<string, string>();
  #wake: (user: string) => void = () => undefined;
  #opened: (cluster: string, target: Target) => void = () => undefined;

  constructor(deps: NodeClustersDeps) {
    this.#deps = deps;
  }

  /**
   * From now on `wake` is called for each user whose cluster may have changed, and `opened` for each target that is new, with the key of its
   * Cluster; once only.
   */
  start({
    wake,
    opened,
  }: {
    readonly wake: (user: string) => void;
    readonly opened: (cluster: string, target: Target) => void;
  }): void {
    this.#wake = wake;
    this.#opened = opened;
    this.#deps.secrets.onChange((old, current) => {
      const secret = current ?? old;
      if (secret === undefined || !secret.metadata.name.endsWith(KUBECONFIG_SECRET_SUFFIX)) return;
      const entry = this.#entries.get(keyOf(secret).slice(0, -KUBECONFIG_SECRET_SUFFIX.length));
      if (entry !== undefined) this.#follow(entry);
    });
  }

  /** Somebody needs the cluster of that Cluster from now on; what nobody needs any more is closed. */
  use(user: string, cluster: string): void {
    if (this.#clusterOf.get(user) === cluster) return;
    this.drop(user);
    this.#clusterOf.set(user, cluster);
    const known = this.#entries.get(cluster);
    if (known !== undefined) return void known.users.add(user);
    const name = cluster.slice(cluster.indexOf('/') + 1);
    const entry: Entry = {
      key: cluster,
      users: new Set([user]),
      secretName: `${name}${KUBECONFIG_SECRET_SUFFIX}`,
      version: undefined,
      hash: undefined,
      open: undefined,
      wasOpen: false,
      problem: undefined,
      lostMs: this.#deps.clock.monotonicMs(),
      missingMs: undefined,
    };
    this.#entries.set(cluster, entry);
    this.#follow(entry);
  }

  drop(user: string): void {
    const cluster = this.#clusterOf.get(user);
    const entry = cluster === undefined ? undefined : this.#entries.get(cluster);
    this.#clusterOf.delete(user);
    entry?.users.delete(user);
    if (entry === undefined || entry.users.size > 0) return;
    this.#entries.delete(entry.key);
    this.#close(entry);
  }

  /** Closes all; what is being opened is closed when it is open. */
  stop(): void {
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    this.#clusterOf.clear();
    for (const entry of entries) this.#close(entry);
  }

  /** Whether a Cluster, by its key, has Nodes elsewhere than in the target cluster of the manager. */
  isApart(cluster: string): boolean {
    return this.#deps.secrets.get(`${cluster}${KUBECONFIG_SECRET_SUFFIX}`) !== undefined;
  }

  get connected(): readonly string[] {
    return [...this.#entries.values()].filter(({ open }) => open !== undefined).map(({ key }) => key);
  }

  /** Where the Node of a Machine is, or is to be. The Machine remembers in which cluster it was found: no other one is taken for it. */
  of(cluster: ClusterAPICluster, machine: KubeObject): NodeCluster {
    const entry = this.#entries.get(keyOf(cluster));
    const mark = machine.metadata.annotations?.[NODE_CLUSTER_ANNOTATION];
    const secretName = `${cluster.metadata.name}${KUBECONFIG_SECRET_SUFFIX}`;
    const sinceMs = entry?.lostMs ?? this.#deps.clock.monotonicMs();
    if (!this.isApart(keyOf(cluster))) {
      const since = { sinceMs, lostSinceMs: entry?.missingMs };
      if (mark !== undefined) {
        const why = `Secret ${secretName} is missing (kubeconfig for the cluster of the Node): create it again`;
        return { kind: 'unreachable', why, ...since };
      }
      if (cluster.metadata.annotations?.[HAD_KUBECONFIG_ANNOTATION] !== undefined) {
        const why =
          `Secret ${secretName} is missing (kubeconfig for the cluster of the Nodes): create it again, or remove annotation ` +
          `${HAD_KUBECONFIG_ANNOTATION} of the Cluster if they are in the target cluster of the manager`;
        return { kind: 'unreachable', why, ...since };
      }
      const { target } = this.#deps;
      return target === undefined ? { kind: 'none' } : { kind: 'reached', target, identity: undefined };
    }
    if (entry?.open === undefined) {
      const why = entry?.problem ?? `Reading Secret ${secretName}`;
      return { kind: 'unreachable', why, sinceMs, lostSinceMs: undefined };
    }
    const { state, target } = entry.open;
    if (state.kind === 'unreachable') {
      return { ...state, why: `the API server in Secret ${secretName}: ${state.why}` };
    }
    if (mark !== undefined && mark !== state.identity) {
      const why =
        `Secret ${secretName} refers to another cluster than that of the Node: correct it, or remove annotation ` +
        `${NODE_CLUSTER_ANNOTATION} if the other cluster no longer exists`;
      return { kind: 'unreachable', why, sinceMs: Number.NEGATIVE_INFINITY, lostSinceMs: undefined };
    }
    return { kind: 'reached', target, identity: state.identity };
  }

  /** Opens what the Secret says now. */
  #follow(entry: Entry): void {
    const secret = this.#deps.secrets.get(`${entry.key}${KUBECONFIG_SECRET_SUFFIX}`);
    if (secret === undefined) {
      entry.missingMs ??= this.#deps.clock.monotonicMs();
      if (entry.version === undefined && entry.problem === undefined) return;
      entry.version = undefined;
      entry.problem = undefined;
      this.#close(entry);
      return this.#wakeAll(entry);
    }
    entry.missingMs = undefined;
    const { resourceVersion } = secret.metadata;
    if (entry.version === resourceVersion) return;
    entry.version = resourceVersion;
    void this.#open(entry, resourceVersion);
  }

  /** Never rejects. What has been overtaken by another version, or is needed no more, changes nothing. */
  async #open(entry: Entry, version: string): Promise<void> {
    const isCurrent = (): boolean => this.#entries.get(entry.key) === entry && entry.version === version;
    const { open, clock } = this.#deps;
    try {
      const kubeconfig = await this.#read(entry);
      const hash = createHash('sha256').update(kubeconfig).digest('hex');
      if (!isCurrent() || (entry.open !== undefined && entry.hash === hash)) return;
      this.#close(entry);
      const opened = await open(entry.key, { secret: entry.secretName, kubeconfig }, () => this.#wakeAll(entry));
      if (!isCurrent()) return opened.close();
      entry.open = opened;
      entry.wasOpen = true;
      entry.hash = hash;
      entry.problem = undefined;
      this.#opened(entry.key, opened.target);
    } catch (err) {
      if (!isCurrent()) return;
      entry.problem = `Secret ${entry.secretName} is not usable: ${err instanceof Error ? err.message : String(err)}`;
      if (err instanceof ConfigError) {
        if (!entry.wasOpen) entry.lostMs = Number.NEGATIVE_INFINITY;
        this.#close(entry);
      } else {
        entry.version = undefined;
        clock.schedule(READ_AGAIN_MS, () => {
          if (this.#entries.get(entry.key) === entry) this.#follow(entry);
        });
      }
    } finally {
      this.#wakeAll(entry);
    }
  }

  /** Throws ConfigError, and ApiError. */
  async #read({ key, secretName: name }: Entry): Promise<string> {
    const namespace = key.slice(0, key.indexOf('/'));
    const { data } = await this.#deps.reader.get(secretResource, { namespace, name });
    const kubeconfig = Buffer.from(data?.['value'] ?? '', 'base64').toString('utf8');
    if (kubeconfig.trim() === '') throw new ConfigError('it has no data under key value');
    return kubeconfig;
  }

  #close(entry: Entry): void {
    if (entry.open === undefined) return;
    entry.open.close();
    entry.open = undefined;
    entry.hash = undefined;
    entry.lostMs = this.#deps.clock.monotonicMs();
  }

  #wakeAll({ users }: Entry): void {
    for (const user of users) this.#wake(user);
  }
}
