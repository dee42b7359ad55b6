import type { SystemClock } from '../clock/system-clock.ts';
import { ClusterContinuity } from '../cache/cluster-continuity.ts';
import { ServerTime } from '../clock/server-time.ts';
import { CONTROL, type Cluster, type Gate } from '../gate/gate.ts';
import type { ProbedCluster } from '../gate/outage-detector.ts';
import { addressOf } from '../kube/address.ts';
import type { Config } from '../config/config.ts';
import type { Writer } from '../kube/client.ts';
import { loadEndpoint } from '../kube/config.ts';
import { type Endpoint, impersonating } from '../kube/endpoint.ts';
import { isNotFound } from '../kube/errors.ts';
import { GatedWriter, type WriteObserver } from '../kube/gated-writer.ts';
import { HttpReader } from '../kube/http-reader.ts';
import type { Interceptor } from '../gate/interceptor.ts';
import { ironCoreMachines, machines, nodes, type Resource } from '../kube/resource.ts';
import { servesOwnKinds } from '../leader/names.ts';
import { createThrottle } from '../clock/throttle.ts';
import { Transport, type RequestRecord } from '../kube/transport.ts';
import type { KubeObject } from '../apis/meta.ts';
import type { Logger } from '../log/logger.ts';
import type { ClockMetrics } from '../metrics/clock.ts';
import type { KubeMetrics } from '../metrics/kube.ts';

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
}

/** The clusters of a process. */
export interface Clusters {
  readonly control: ClusterAccess;
  /** Undefined without a target cluster; the same as `control` when both are one cluster. */
  readonly target: ClusterAccess | undefined;
}

/** How the ways to the API servers of a process are made. */
export interface ClustersOptions {
  readonly userAgent: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly qps: number;
  readonly burst: number;
  readonly clock: SystemClock;
  readonly log: Logger;
  readonly metrics: KubeMetrics;
  readonly clockMetrics: ClockMetrics;
  /** Whom to be to the API servers; ourselves unless told otherwise. */
  readonly impersonate?: string | undefined;
  readonly onRequest?: ((record: RequestRecord) => void) | undefined;
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
  options: ClustersOptions,
): Promise<Clusters> {
  const { controlKubeconfig, targetKubeconfig, namespace } = clusters;
  const isAlone = targetKubeconfig === 'none';
  const control = await openCluster({
    ...options,
    cluster: CONTROL,
    kubeconfig: controlKubeconfig === '' && !isAlone ? targetKubeconfig : controlKubeconfig,
    probe: { resource: servesOwnKinds(leases) ? machines : ironCoreMachines, namespace },
  });
  if (isAlone) return { control, target: undefined };
  if (controlKubeconfig === '' || controlKubeconfig === targetKubeconfig) return { control, target: control };
  const probe = { resource: nodes, namespace: undefined };
  return { control, target: await openCluster({ ...options, cluster: TARGET, kubeconfig: targetKubeconfig, probe }) };
}

/** A writer to a cluster, behind `gate`; `observer` gets its answers. */
export function writerTo(
  { transport, cluster }: ClusterAccess,
  options: { gate: Gate; observer: WriteObserver; intercept: Interceptor | undefined },
): Writer {
  return new GatedWriter({ transport, cluster, ...options });
}

/** Opens the way to the API server of a kubeconfig; see `accessTo`. Throws ConfigError. */
export async function openCluster(options: ClusterOptions): Promise<ClusterAccess> {
  const { kubeconfig, clock, env } = options;
  const own = await loadEndpoint({ kubeconfig, clock, env });
  return accessTo(options.impersonate === undefined ? own : impersonating(own, options.impersonate), options);
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
            log.warn({ cluster, ms: skewMs }, 'adjusted our clock to the API server');
            options.clockMetrics.reanchors.inc();
            options.clockMetrics.lastSkew.set(skewMs / 1_000);
          },
        })
      : undefined;
  const transport = new Transport({
    endpoint,
    clock,
    userAgent: options.userAgent,
    throttle: createThrottle({
      qps: options.qps,
      burst: options.burst,
      clock,
      waited: (ms) => metrics.throttled.observe(ms / 1_000),
    }),
    metrics,
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
    continuity: new ClusterContinuity(clock),
    probed: {
      cluster,
      async probe(signal) {
        // Without a namespace the path of one object is not served, and that answer proves nothing.
        const namespace = probe.namespace || 'default';
        const address = addressOf(probe.resource, { namespace, name: PROBED_NAME });
        try {
          await transport.request({ method: 'GET', verb: 'get', address, signal, lane: 'probes' });
        } catch (err) {
          if (!isNotFound(err)) throw err;
        }
      },
    },
  };
}
