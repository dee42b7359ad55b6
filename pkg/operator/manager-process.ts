import type { Registry } from 'prom-client';

import type { ProcessClock } from '../base/clock/process-clock.ts';
import type { Logger } from '../base/log/logger.ts';
import { buildInfo } from '../base/metrics/build.ts';
import { heldWorkMetrics } from '../base/metrics/held-work.ts';
import { logMetrics } from '../base/metrics/log.ts';
import { createRegistry } from '../base/metrics/registry.ts';
import { type Random, secureRandom } from '../base/random/random.ts';
import { HeldWork } from '../health/held-work.ts';
import type { OpenDispatcher } from '../kube/client/dispatchers.ts';
import type { OpenEndpoint } from '../kube/client/endpoint.ts';
import type { RequestRecord } from '../kube/client/transport.ts';
import type { Recorder } from '../kube/events/recorder.ts';
import { CONTROL, type Cluster, type Gate } from '../kube/gate/gate.ts';
import type { Interceptor } from '../kube/gate/interceptor.ts';
import type { Trust } from '../kube/gate/leader-gate.ts';
import { Outages } from '../kube/gate/outages.ts';
import { LeaseThread } from '../kube/leader/lease-thread.ts';
import { ClusterCaches, type ClusterCachesOptions } from './cluster-caches.ts';
import { ClusterIdentity } from './cluster-identity.ts';
import { type ClusterAccess, type Clusters, openClusters } from './clusters.ts';
import type { Config } from './config/config.ts';
import type { DriverHooks } from './drivers.ts';
import { type OperatorMetrics, operatorMetrics } from './metrics.ts';
import { roleFiles } from './preflight/permissions.ts';
import { type HostProcess, Lifecycle } from './process/lifecycle.ts';
import type { World } from './world.ts';

export interface OperatorOptions {
  readonly config: Config;
  /** The APIs that it can serve beside ours, see pkg/worlds. */
  readonly worlds: readonly World[];
  /** Host name and a random suffix: different for each start. */
  readonly identity: string;
  readonly version: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: ProcessClock;
  readonly log: Logger;
  readonly host: HostProcess;
  readonly hooks?: OperatorHooks;
}

/** For tests, benchmarks and simulations. */
export interface OperatorHooks extends DriverHooks {
  readonly onRequest?: (record: RequestRecord) => void;
  readonly intercept?: Interceptor;
  /** Leases are renewed by the event loop and the clock of all else, not in a thread of their own: for clocks that jump. */
  readonly leasesInMainThread?: boolean;
  /** In place of the gate of each leadership. */
  readonly gate?: Gate & Trust;
  /** In place of the recorders of all components. */
  readonly recorder?: Recorder;
  /** Probes and metrics are not served, or on a free port, of which it is told; undefined: on the port of the flags. */
  readonly health?: 'none' | ((port: number) => void);
  /** In place of connections to API servers. */
  readonly openDispatcher?: OpenDispatcher;
  /** In place of reading kubeconfigs, which takes the host's time. */
  readonly openEndpoint?: OpenEndpoint;
  /** In place of the source of production; a seed's makes a run repeatable. */
  readonly random?: Random;
  /** Freezes what caches give, which finds those who write to it. */
  readonly freezeCached?: boolean;
}

/** What a process has once, however many namespaces it looks after: the clusters of its flags, and what starts and ends with it. */
export class ManagerProcess {
  readonly options: OperatorOptions;
  readonly random: Random;
  readonly registry: Registry;
  readonly metrics: OperatorMetrics;
  readonly clusters: Clusters;
  readonly outages: Outages;
  readonly held: HeldWork;
  /** Of the control cluster, under which drivers tag VMs. */
  readonly identity: ClusterIdentity;
  /** Caches of the control cluster. */
  readonly ofControl: ClusterCaches;
  readonly lifecycle: Lifecycle;
  /** In which Leases are renewed; undefined: by the event loop, or there are none. */
  readonly thread: LeaseThread | undefined;

  private constructor(
    options: OperatorOptions & { readonly registry: Registry; readonly metrics: OperatorMetrics },
    clusters: Clusters,
  ) {
    const { config, clock, log, registry, metrics, hooks } = options;
    const { statusCheckPeriodMs: periodMs, statusCheckTimeoutMs: timeoutMs } = config.safety;
    this.options = options;
    this.random = hooks?.random ?? secureRandom;
    this.registry = registry;
    this.metrics = metrics;
    this.clusters = clusters;
    this.outages = new Outages({ clock, log, metrics: metrics.gate, periodMs, timeoutMs });
    this.held = new HeldWork({ clock });
    heldWorkMetrics(registry, () => this.held.list());
    this.lifecycle = new Lifecycle(options);
    this.identity = new ClusterIdentity({
      clock,
      random: this.random,
      log,
      held: this.held,
      reader: clusters.control.reader,
      endpoint: clusters.control.endpoint,
      lost: (reason, err) => this.lifecycle.fatal(reason, err),
    });
    this.ofControl = new ClusterCaches(clusters.control, { ...this.cached, roleFile: this.roleFiles.control });
    this.thread = createLeaseThread(clusters.control, options, this.userAgent);
  }

  /** Opens the clusters and declares the metrics; nothing is sent yet. Throws ConfigError for an unusable kubeconfig. */
  static async open(options: OperatorOptions): Promise<ManagerProcess> {
    const { config, clock, env, log, hooks } = options;
    const registry = createRegistry();
    const metrics = operatorMetrics(registry);
    buildInfo(registry, { version: options.version, program: config.program });
    logMetrics(registry, () => log.lostLines?.() ?? 0);
    let moved: ((cluster: Cluster) => void) | undefined;
    let targetMoved: (() => void) | undefined;
    const clusters = await openClusters(config, options.worlds, {
      moved: (cluster) => moved?.(cluster),
      ...(config.cells?.hasOneTarget === true && { targetMoved: () => targetMoved?.() }),
      userAgent: userAgentOf(options),
      env,
      ...config.api,
      clock,
      log,
      metrics: metrics.kube,
      clockMetrics: metrics.clock,
      onRequest: hooks?.onRequest,
      openDispatcher: hooks?.openDispatcher,
      openEndpoint: hooks?.openEndpoint,
    });
    const opened = new ManagerProcess({ ...options, registry, metrics }, clusters);
    moved = (cluster) => {
      if (cluster === CONTROL) opened.identity.check();
    };
    targetMoved = () =>
      opened.lifecycle.fatal(
        'the kubeconfig of the target cluster of all cells names another server, proxy, server name or CA now',
      );
    return opened;
  }

  /** `machinist/<version> <program>`. */
  get userAgent(): string {
    return userAgentOf(this.options);
  }

  /** The shipped files that grant what is read, by cluster. */
  get roleFiles(): ReturnType<typeof roleFiles> {
    const { config, worlds } = this.options;
    const { cells, leases, clusters, leader } = config;
    const where = { namespace: clusters.namespace, leaseNamespace: leader.namespace };
    const ofNamedCells = cells?.names === undefined ? undefined : 'process';
    return roleFiles({ leases, ...where, hasCells: cells !== undefined, ofNamedCells }, worlds);
  }

  /** How caches are filled. */
  get cached(): Omit<ClusterCachesOptions, 'roleFile'> {
    const { random, metrics, outages, held } = this;
    const { clock, log, hooks } = this.options;
    return { clock, random, log, metrics: metrics.kube, outages, held, freeze: hooks?.freezeCached ?? false };
  }
}

function userAgentOf({ version, config }: OperatorOptions): string {
  return `machinist/${version} ${config.program.replaceAll(' ', '-')}`;
}

/** The thread in which the electors run; undefined without leader election, and where tests move the clock. */
function createLeaseThread(
  { endpoint, transport }: ClusterAccess,
  { config, identity, clock, log, hooks }: OperatorOptions,
  userAgent: string,
): LeaseThread | undefined {
  if (!config.leader.enabled || hooks?.leasesInMainThread === true) return undefined;
  return new LeaseThread({
    endpoint,
    namespace: config.leader.namespace,
    identity,
    userAgent,
    timing: config.leader,
    clock,
    log,
    onRequest: (record) => transport.note(record),
  });
}
