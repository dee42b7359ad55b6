import type { Registry } from 'prom-client';

import type { Logger } from '../base/log/logger.ts';
import type { Driver } from '../driver/driver.ts';
import type { HeldWork } from '../health/held-work.ts';
import type { EventSubject } from '../kube/events/correlator.ts';
import type { Recorder } from '../kube/events/recorder.ts';
import type { Outages } from '../kube/gate/outages.ts';
import type { CachingProcess } from './cached/kind.ts';
import { addCaches, alsoReadBy, type Caches } from './caches.ts';
import type { ClusterCaches, ClusterCachesOptions } from './cluster-caches.ts';
import type { Config } from './config/config.ts';
import type { ClusterAccess, ClustersOptions } from './clusters.ts';
import { createElection, type Election } from './election.ts';
import type { ManagerProcess } from './manager-process.ts';
import type { OperatorMetrics } from './metrics.ts';
import type { Operator } from './operator.ts';
import type { SharedTarget } from './shared-target.ts';
import type { TargetCluster } from './target-cluster.ts';
import { TargetClusters, type TargetClustersOptions } from './target-clusters.ts';

/** What of a process belongs to one namespace of Machines, and to the cluster that these join. */
export interface Cell {
  readonly config: Config;
  readonly log: Logger;
  readonly registry: Registry;
  readonly metrics: OperatorMetrics;
  readonly outages: Outages;
  readonly held: HeldWork;
  readonly control: ClusterAccess;
  /** Of the control cluster. */
  readonly caches: Caches;
  /** See Operator. */
  readonly openCache: Operator['openCache'];
  /** Where these are filled. */
  readonly ofControl: ClusterCaches;
  readonly targets: TargetClusters;
  /** Undefined without a target cluster. */
  readonly target: TargetCluster | undefined;
  /** Where the Nodes of other cells are in the same target. */
  readonly sharedTarget?: SharedTarget | undefined;
  /** Makes the candidacy for a Lease, announced by `recorder`; nothing is acquired yet. */
  readonly elect: (lease: string, recorder: Recorder) => Election;
  /** Where nobody has waited for the first lists of the target before the work begins. */
  readonly firstRead?:
    | {
        /** Resolves when all are there; rejects with the signal's reason. */
        readonly until: (signal: AbortSignal) => Promise<void>;
        /** How long the work waits for them at most, whatever is wrong; without it until the target has an outage. */
        readonly longestMs?: number;
      }
    | undefined;
  /** On which outages of the target are reported; undefined: the Leases. */
  readonly subject?: EventSubject;
  /** Connections to drivers that several cells share; undefined: it has its own. */
  readonly openDriver?: (provider: string) => Driver;
}

/** The one cell of a process whose flags name the namespace and the target cluster. */
export function cellOfFlags(process: ManagerProcess): Cell {
  const { registry, metrics, outages, held, ofControl } = process;
  const { config, log, worlds } = process.options;
  const caching = cachingProcess(process, config);
  const targets = targetsOf(process, caching, {});
  const access = process.clusters.target;
  const target = access && targets.add(access, process.roleFiles.target);
  return {
    config,
    log,
    registry,
    metrics,
    outages,
    held,
    control: process.clusters.control,
    targets,
    target,
    ofControl,
    caches: addCaches(ofControl, { process: caching, worlds }),
    openCache: (resource, options) => ofControl.open(resource, options),
    elect: (lease, recorder) => createElection(lease, recorder, process),
  };
}

/** What decides which kinds are cached. */
export function cachingProcess(process: ManagerProcess, config: Config): CachingProcess {
  const { clusters, leader, leases, autoscaler, controllers, of } = config;
  const role = {
    namespace: clusters.namespace,
    leaseNamespace: leader.namespace,
    leases,
    isAutoscaled: autoscaler !== undefined,
    controllers,
    of,
  };
  return { ...role, alsoRead: alsoReadBy(process.options.worlds, role) };
}

/** The target clusters of a cell; `own` are its parts in place of the process's. */
export function targetsOf(
  process: ManagerProcess,
  caching: CachingProcess,
  own: Partial<
    Pick<ClusterCachesOptions, 'log' | 'outages' | 'held' | 'metrics' | 'maxBytes' | 'watchSeconds'> &
      Pick<ClustersOptions, 'probeConnections' | 'historyForMs'> &
      Pick<TargetClustersOptions, 'claim' | 'servicesIn'>
  >,
): TargetClusters {
  const { config, clock, hooks } = process.options;
  return new TargetClusters({
    ...config.api,
    ...process.cached,
    ...own,
    clock,
    process: caching,
    userAgent: process.userAgent,
    clockMetrics: process.metrics.clock,
    intercept: hooks?.intercept,
    onRequest: hooks?.onRequest,
    openDispatcher: hooks?.openDispatcher,
  });
}
