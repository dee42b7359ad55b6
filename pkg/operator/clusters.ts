import type { ProcessClock } from '../base/clock/process-clock.ts';
import { ClusterContinuity } from '../kube/cache/cluster-continuity.ts';
import { ServerTime } from '../base/clock/server-time.ts';
import { CONTROL, type Cluster, type Gate } from '../kube/gate/gate.ts';
import type { ProbedCluster } from '../kube/gate/outage-detector.ts';
import { addressOf } from '../kube/client/address.ts';
import type { Config } from './config/config.ts';
import type { Writer } from '../kube/client/client.ts';
import { loadEndpoint } from '../kube/client/config.ts';
import {
  type CredentialState,
  type Endpoint,
  impersonating,
  type LoadResult,
  type OpenEndpoint,
} from '../kube/client/endpoint.ts';
import { ignoreNotFound } from '../kube/client/errors.ts';
import { GatedWriter, type WriteObserver } from '../kube/client/gated-writer.ts';
import { HttpReader } from '../kube/client/http-reader.ts';
import type { Interceptor } from '../kube/gate/interceptor.ts';
import { machines, nodes } from '../kube/client/resource.ts';
import type { Resource } from '../apis/resource.ts';
import { servesOwnKinds } from '../kube/leader/names.ts';
import { fairly } from '../base/clock/fair-throttle.ts';
import { createThrottle } from '../base/clock/throttle.ts';
import { Transport, type RequestRecord } from '../kube/client/transport.ts';
import type { KubeObject } from '../apis/meta.ts';
import type { Logger } from '../base/log/logger.ts';
import type { ClockMetrics } from '../base/metrics/clock.ts';
import type { KubeMetrics } from '../base/metrics/kube.ts';
import type { OpenDispatcher } from '../kube/client/dispatchers.ts';
import type { World } from './world.ts';

/** The way to one API server. */
export interface ClusterAccess {
  readonly cluster: Cluster;
  /** Scheme, host and port, for the log. */
  readonly server: string;
  readonly endpoint: Endpoint;
  readonly transport: Transport;
  readonly reader: HttpReader;
  /** For reads that ask how the server is: past the rate limit. */
  readonly prober: HttpReader;
  readonly probed: ProbedCluster;
  /** Whether it goes on where the caches are. */
  readonly continuity: ClusterContinuity;
  /** Who uses it, if several do. */
  readonly flow?: string;
}

export interface Clusters {
  readonly control: ClusterAccess;
  /** Undefined without a target cluster; the same as `control` when both are one cluster. */
  readonly target: ClusterAccess | undefined;
}

/** Each of them once. */
export function accessesOf({ control, target }: Clusters): readonly ClusterAccess[] {
  return target === undefined || target === control ? [control] : [control, target];
}

/** How the ways to the API servers of a process are made. */
export interface ClustersOptions {
  readonly userAgent: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly qps: number;
  readonly burst: number;
  readonly clock: ProcessClock;
  readonly log: Logger;
  readonly metrics: KubeMetrics;
  readonly clockMetrics: ClockMetrics;
  /** Whom to be to the API servers; ourselves unless told otherwise. */
  readonly impersonate?: string | undefined;
  readonly onRequest?: ((record: RequestRecord) => void) | undefined;
  /** See TransportOptions. */
  readonly openDispatcher?: OpenDispatcher | undefined;
  readonly openEndpoint?: OpenEndpoint | undefined;
  /** The most that is taken of a server that may send anything: in an answer, and of a kind in a cache. */
  readonly maxBytes?: number | undefined;
  /** See DispatchersOptions. */
  readonly probeConnections?: number | undefined;
  /** See ClusterContinuity. */
  readonly historyForMs?: number | undefined;
  /** Told when the kubeconfig of a cluster names another server than before, and that is used. Must not throw. */
  readonly moved?: ((cluster: Cluster) => void) | undefined;
  /** Told when the kubeconfig of the target cluster may lead to another one than before, which is then not used; undefined: it is. Must not throw. */
  readonly targetMoved?: (() => void) | undefined;
}

/** How the way to one API server is made. */
export interface ClusterOptions extends ClustersOptions {
  readonly cluster: Cluster;
  /** As `EndpointSource.kubeconfig`. */
  readonly kubeconfig: string;
  /** Read to see whether the server answers; an object of this kind that nobody has. */
  readonly probe: { readonly resource: Resource<KubeObject>; readonly namespace: string | undefined };
}

/** Name of the target in metrics, logs and the gate, when it is a cluster of its own. */
const TARGET = 'target';

/** Name of the object that probes ask for, as in the original; that it does not exist is a good answer, if an API server says so. */
const PROBED_NAME = 'dummy-name';

/** Opens the clusters that the flags name; nothing is sent yet. Throws ConfigError. */
export async function openClusters(
  { clusters, leases }: Pick<Config, 'clusters' | 'leases'>,
  worlds: readonly World[],
  options: ClustersOptions,
): Promise<Clusters> {
  const { controlKubeconfig, targetKubeconfig, namespace } = clusters;
  const isAlone = targetKubeconfig === 'none';
  const [probed = machines] = servesOwnKinds(leases) ? [] : worlds.flatMap(({ alone }) => alone?.probed ?? []);
  const control = await openCluster({
    ...options,
    targetMoved: controlKubeconfig === targetKubeconfig ? options.targetMoved : undefined,
    cluster: CONTROL,
    kubeconfig: controlKubeconfig === '' && !isAlone ? targetKubeconfig : controlKubeconfig,
    probe: { resource: probed, namespace },
  });
  if (isAlone) return { control, target: undefined };
  if (controlKubeconfig === '' || controlKubeconfig === targetKubeconfig) return { control, target: control };
  const probe = { resource: nodes, namespace: undefined };
  return { control, target: await openCluster({ ...options, cluster: TARGET, kubeconfig: targetKubeconfig, probe }) };
}

/** A writer to a cluster, behind `gate`; `observer` gets its answers. */
export function writerTo(
  { transport, cluster, flow }: ClusterAccess,
  options: { gate: Gate; observer: WriteObserver; intercept: Interceptor | undefined },
): Writer {
  return new GatedWriter({ transport, cluster, flow, ...options });
}

/** The same way for one of several who share it: they take turns for connections, and where the rate of requests is limited. */
export function accessFor(access: ClusterAccess, flow: string): ClusterAccess {
  return { ...access, flow, reader: new HttpReader(access.transport, 'requests', flow) };
}

/** Opens the way to the API server of a kubeconfig; see `accessTo`. Throws ConfigError. */
export async function openCluster(options: ClusterOptions): Promise<ClusterAccess> {
  const { cluster, kubeconfig, clock, env, metrics } = options;
  for (const result of ['ok', 'failed']) metrics.credentialLoads.inc({ cluster, result }, 0);
  const own =
    options.openEndpoint?.(kubeconfig) ??
    (await loadEndpoint({
      kubeconfig,
      clock,
      env,
      moved: options.targetMoved,
      onLoad: (result) => noteLoad(result, options),
    }));
  showCredentialAge(cluster, own, { metrics, clock });
  return accessTo(options.impersonate === undefined ? own : impersonating(own, options.impersonate), options);
}

/** One load in so many is told while they fail. */
const REPORT_EACH = 10;

/** Told early: what was loaded before may be accepted for hours yet, and then nothing is any more. */
function noteLoad(result: LoadResult, { cluster, log, metrics, moved }: ClusterOptions): void {
  metrics.credentialLoads.inc({ cluster, result: result.ok ? 'ok' : 'failed' });
  const { failures } = result;
  if (!result.ok) {
    const level = failures % REPORT_EACH === 1 ? 'warn' : 'debug';
    log[level]({ cluster, failures, err: result.why }, 'could not load the credentials');
    return;
  }
  if (failures > 0) log.info({ cluster, failures }, 'reloaded the credentials');
  if (result.movedTo === undefined) return;
  log.warn({ cluster, server: new URL(result.movedTo).origin }, 'using another server from the kubeconfig');
  moved?.(cluster);
}

/** Shows for how long the credentials of a cluster have not been loaded. */
export function showCredentialAge(
  cluster: Cluster,
  endpoint: Endpoint,
  { metrics, clock }: Pick<ClustersOptions, 'metrics' | 'clock'>,
): void {
  metrics.credentialAge(cluster, () => ageOf(endpoint.state, clock.monotonicMs()) / 1_000);
}

function ageOf(state: CredentialState | undefined, nowMs: number): number {
  return nowMs - (state?.loadedMs ?? state?.missingSinceMs ?? nowMs);
}

/**
 * The way to one API server; nothing is sent yet. Only the control cluster's time is believed: it is the one that the
 * timestamps of Machines and Leases go by, and two servers that disagree would move the clock to and fro.
 */
export function accessTo(
  endpoint: Endpoint,
  options: Omit<ClusterOptions, 'kubeconfig' | 'env' | 'impersonate'>,
): ClusterAccess {
  const { cluster, clock, log, metrics, probe } = options;
  const serverTime =
    cluster === CONTROL
      ? new ServerTime({
          clock,
          reanchored: (skewMs) => {
            log.warn({ cluster, skewMs }, 'adjusted the clock to that of the API server');
            options.clockMetrics.reanchors.inc();
            options.clockMetrics.lastSkew.set(skewMs / 1_000);
          },
        })
      : undefined;
  const transport = new Transport({
    endpoint,
    clock,
    userAgent: options.userAgent,
    throttle: fairly(createThrottle(options), {
      clock,
      waited: (ms) => metrics.throttled.observe(ms / 1_000),
    }),
    metrics,
    openDispatcher: options.openDispatcher,
    maxBytes: options.maxBytes,
    probeConnections: options.probeConnections,
    onRequest: (record) => {
      serverTime?.observe(record);
      options.onRequest?.(record);
    },
  });
  const reader = new HttpReader(transport);
  return {
    cluster,
    server: new URL(endpoint.url).origin,
    endpoint,
    transport,
    reader,
    prober: new HttpReader(transport, 'probes'),
    continuity: new ClusterContinuity(clock, { historyForMs: options.historyForMs }),
    probed: {
      cluster,
      get lackOfCredentials() {
        const { missingSinceMs, trouble } = endpoint.state ?? {};
        return missingSinceMs === undefined ? undefined : trouble;
      },
      async probe(signal) {
        // Without a namespace the path of one object is not served, and that answer proves nothing.
        const namespace = probe.namespace || 'default';
        const address = addressOf(probe.resource, { namespace, name: PROBED_NAME });
        await transport.request({ method: 'GET', verb: 'get', address, signal, lane: 'probes' }).catch(ignoreNotFound);
      },
    },
  };
}
