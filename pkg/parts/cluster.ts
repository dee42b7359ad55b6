import type { SystemClock } from '../clock/system-clock.ts';
import { ClusterContinuity } from '../cache/cluster-continuity.ts';
import { ServerTime } from '../clock/server-time.ts';
import { CONTROL } from '../gate/gate.ts';
import type { Cluster } from '../gate/gate.ts';
import type { ProbedCluster } from '../gate/cluster-freeze.ts';
import { addressOf } from '../kube/address.ts';
import { loadEndpoint } from '../kube/config.ts';
import type { Endpoint } from '../kube/endpoint.ts';
import { isNotFound } from '../kube/errors.ts';
import { HttpReader } from '../kube/http-reader.ts';
import type { Resource } from '../kube/resource.ts';
import { createThrottle } from '../kube/throttle.ts';
import { Transport } from '../kube/transport.ts';
import type { RequestRecord } from '../kube/transport.ts';
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

/** How the way to an API server is made. */
export interface ClusterOptions {
  readonly cluster: Cluster;
  /** As `EndpointSource.kubeconfig`. */
  readonly kubeconfig: string;
  /** Read to see whether the server answers; an object of this kind that nobody has. */
  readonly probe: { readonly resource: Resource<KubeObject>; readonly namespace: string | undefined };
  readonly userAgent: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly qps: number;
  readonly burst: number;
  readonly clock: SystemClock;
  readonly log: Logger;
  readonly metrics: KubeMetrics;
  readonly clockMetrics: ClockMetrics;
  readonly onRequest?: ((record: RequestRecord) => void) | undefined;
}

/** Name of the object that probes ask for, as in the original; that it does not exist is a good answer, if an API server says so. */
const PROBED_NAME = 'dummy-name';

/**
 * Opens the way to one API server; nothing is sent yet. Only the control cluster's time is believed: it is the one that the
 * timestamps of Machines and Leases go by, and two servers that disagree would move the clock to and fro. Throws ConfigError.
 */
export async function openCluster(options: ClusterOptions): Promise<ClusterAccess> {
  const { cluster, clock, log, metrics, probe } = options;
  const endpoint = await loadEndpoint({ kubeconfig: options.kubeconfig, clock, env: options.env });
  const serverTime =
    cluster === CONTROL
      ? new ServerTime({
          clock,
          reanchored: (skewMs) => {
            log.warn({ cluster, ms: skewMs }, 'moved our clock to the time of the API server');
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
