import type { Registry } from 'prom-client';

import { machines, nodes } from '../kube/resource.ts';
import type { RequestRecord } from '../kube/transport.ts';
import type { Interceptor } from '../kube/interceptor.ts';
import type { MutationInterceptor } from '../driver/interceptor.ts';
import type { SystemClock } from '../clock/system-clock.ts';
import type { Config } from '../config/config.ts';
import { Freezes } from '../gate/freeze.ts';
import { CONTROL } from '../gate/gate.ts';
import { HeldWork } from '../health/held-work.ts';
import type { Logger } from '../log/logger.ts';
import { activityMetrics } from '../metrics/activity.ts';
import { clockMetrics } from '../metrics/clock.ts';
import { driverMetrics } from '../metrics/driver.ts';
import { eventMetrics } from '../metrics/events.ts';
import { gateMetrics } from '../metrics/gate.ts';
import { heldWorkMetrics } from '../metrics/held-work.ts';
import { kubeMetrics } from '../metrics/kube.ts';
import { leaderMetrics } from '../metrics/leader.ts';
import { queueMetrics } from '../metrics/queue.ts';
import { reconcileMetrics } from '../metrics/reconcile.ts';
import { createRegistry } from '../metrics/registry.ts';
import { ClusterIdentity } from './cluster-identity.ts';
import { type ClusterAccess, openCluster } from './cluster.ts';

/** What a process is built from. */
export interface ManagerOptions {
  readonly config: Config;
  /** Host name and a random suffix: different for each start. */
  readonly identity: string;
  readonly version: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: SystemClock;
  readonly log: Logger;
  /** For tests and benchmarks. */
  readonly hooks?: {
    readonly onRequest?: (record: RequestRecord) => void;
    readonly intercept?: Interceptor;
    readonly interceptDriver?: MutationInterceptor;
    /** How long a driver's mutations may take instead of a minute and more. */
    readonly driverMutationTimeoutMs?: number;
    /** Leases are renewed by the event loop and the clock of all else, not in a thread of their own: for clocks that jump. */
    readonly leasesInMainThread?: boolean;
  };
}

/** What every part of the process shares. */
export interface Base extends ManagerOptions {
  readonly registry: Registry;
  readonly metrics: Metrics;
  readonly freezes: Freezes;
  /** `machinist/<version> <program>`. */
  readonly userAgent: string;
  readonly held: HeldWork;
  /** Of the control cluster; read before drivers are called. */
  readonly clusterIdentity: ClusterIdentity;
  readonly control: ClusterAccess;
  /** Undefined without a target cluster; the same as `control` when both are one cluster. */
  readonly target: ClusterAccess | undefined;
}

/** All metrics that are declared once for the process. */
export interface Metrics {
  readonly activity: ReturnType<typeof activityMetrics>;
  readonly driver: ReturnType<typeof driverMetrics>;
  readonly event: ReturnType<typeof eventMetrics>;
  readonly gate: ReturnType<typeof gateMetrics>;
  readonly kube: ReturnType<typeof kubeMetrics>;
  readonly leader: ReturnType<typeof leaderMetrics>;
  readonly queue: ReturnType<typeof queueMetrics>;
  readonly reconcile: ReturnType<typeof reconcileMetrics>;
}

/** Name of the target in metrics, logs and the gate, when it is a cluster of its own. */
const TARGET = 'target';

/** Opens the clusters and declares the metrics; nothing is sent yet. Throws ConfigError. */
export async function makeBase(options: ManagerOptions): Promise<Base> {
  const { config, clock, log } = options;
  const registry = createRegistry();
  const metrics: Metrics = {
    activity: activityMetrics(registry),
    driver: driverMetrics(registry),
    event: eventMetrics(registry),
    gate: gateMetrics(registry),
    kube: kubeMetrics(registry),
    leader: leaderMetrics(registry),
    queue: queueMetrics(registry),
    reconcile: reconcileMetrics(registry),
  };
  const { statusCheckPeriodMs: periodMs, statusCheckTimeoutMs: timeoutMs } = config.safety;
  const freezes = new Freezes({ clock, log, metrics: metrics.gate, periodMs, timeoutMs });
  const { controlKubeconfig, targetKubeconfig, namespace } = config.clusters;
  const userAgent = `machinist/${options.version} ${config.program.replaceAll(' ', '-')}`;
  const shared = {
    userAgent,
    env: options.env,
    ...config.api,
    clock,
    log,
    metrics: metrics.kube,
    clockMetrics: clockMetrics(registry),
    onRequest: options.hooks?.onRequest,
  };
  const isOneCluster = controlKubeconfig === '' || controlKubeconfig === targetKubeconfig;
  const control = await openCluster({
    ...shared,
    cluster: CONTROL,
    kubeconfig: controlKubeconfig === '' ? targetKubeconfig : controlKubeconfig,
    probe: { resource: machines, namespace },
  });
  const held = new HeldWork({ clock });
  heldWorkMetrics(registry, () => held.list());
  const clusterIdentity = new ClusterIdentity({ clock, log, held, reader: control.reader });
  const base = { ...options, registry, metrics, freezes, userAgent, held, clusterIdentity, control };
  if (targetKubeconfig === 'none') return { ...base, target: undefined };
  const target = isOneCluster
    ? control
    : await openCluster({
        ...shared,
        cluster: TARGET,
        kubeconfig: targetKubeconfig,
        probe: { resource: nodes, namespace: undefined },
      });
  return { ...base, target };
}
