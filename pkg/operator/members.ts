import type { Registry } from 'prom-client';

import type { Clock } from '../base/clock/clock.ts';
import type { Config } from './config/config.ts';
import type { EventRecorder } from '../kube/events/recorder.ts';
import type { ClusterState } from '../kube/gate/outage-detector.ts';
import type { Outages } from '../kube/gate/outages.ts';
import {
  type Check,
  Checks,
  cachesSynced,
  clustersReachable,
  credentialsValid,
  leadership as leadershipCheck,
} from '../health/checks.ts';
import { type HeldWork, workBegun } from '../health/held-work.ts';
import type { Page } from '../health/page.ts';
import { Profiles } from '../health/profiles.ts';
import { HealthServer, type HealthServerDeps, HealthServerError } from '../health/server.ts';
import type { WorkInProgress } from '../health/work-in-progress.ts';
import type { LeaseThread } from '../kube/leader/lease-thread.ts';
import type { LogFields, Logger } from '../base/log/logger.ts';
import { CannotStartError, type Member } from './process/lifecycle.ts';
import type { ClusterCaches } from './cluster-caches.ts';
import { type Clusters, accessesOf } from './clusters.ts';
import type { OwnLeadership } from './leadership.ts';
import { probesOf } from './probes.ts';

const RECORDER_STOP_MS = 4_000;

/** What a log begins with. */
export interface StartOptions {
  readonly version: string;
  readonly identity: string;
  readonly config: Config;
  /** Those that the process applies for. */
  readonly leases: readonly string[];
}

/** What pages for people show of the process itself, at each moment. */
export interface ObservedProcess {
  readonly identity: string;
  readonly version: string;
  /** Of /readyz. */
  readonly checks: Checks;
  readonly leaderships: readonly Pick<OwnLeadership, 'lease' | 'elector'>[];
  /** Undefined: nothing is done about Machines. */
  readonly work: (() => WorkInProgress) | undefined;
  clusters(): readonly ClusterState[];
}

export interface HealthOptions {
  readonly server: Config['server'];
  /** Told of the port, a free one; undefined: it is the one of `server`. */
  readonly listening: ((port: number) => void) | undefined;
  readonly registry: Registry;
  /** See HealthServerDeps. */
  readonly scraped?: HealthServerDeps['scraped'];
  readonly caches: readonly ClusterCaches[];
  readonly outages: Outages;
  readonly held: HeldWork;
  readonly work: (() => WorkInProgress) | undefined;
  readonly makePage: ((process: ObservedProcess) => Page) | undefined;
  readonly identity: string;
  readonly version: string;
  readonly leaderships: readonly Pick<OwnLeadership, 'lease' | 'elector'>[];
  readonly clusters: Clusters;
  readonly renewDeadlineMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Further checks of readiness. */
  readonly checks?: readonly Check[];
}

/** Starts first, with a line in the log, so that connections are closed when everything else has ended. */
export function connectionsMember(
  clusters: Clusters,
  thread: LeaseThread | undefined,
  { log, ...started }: StartOptions & { readonly log: Logger },
): Member {
  return {
    name: 'connections',
    start() {
      log.info(startFields(clusters, started), 'started the process');
      return Promise.resolve();
    },
    async stop() {
      await thread?.close();
      for (const { transport } of accessesOf(clusters)) await transport.close();
    },
  };
}

/** Liveness, readiness and metrics. */
export function healthMember(options: HealthOptions): Member {
  const { registry, caches, outages, held, work, leaderships, listening, clock, log } = options;
  const checks = new Checks();
  checks.add(
    cachesSynced(() => caches.flatMap(({ synced }) => [...synced])),
    clustersReachable(
      () => outages.states(),
      () => clock.monotonicMs(),
    ),
    credentialsValid(
      () => accessesOf(options.clusters).map(({ cluster, endpoint }) => ({ cluster, state: endpoint.state })),
      () => clock.monotonicMs(),
      options.renewDeadlineMs,
    ),
    workBegun(
      () => held.list(),
      (cluster) => outages.state(cluster)?.outage !== undefined,
    ),
    ...leaderships.flatMap(({ lease, elector }) => (elector === undefined ? [] : [leadershipCheck(lease, elector)])),
    ...(options.checks ?? []),
  );
  const live = new Checks();
  live.add({ name: 'ping', check: () => ({ ok: true }) });
  const { address, profiling } = options.server;
  const port = listening === undefined ? options.server.port : 0;
  const profiles = profiling ? new Profiles(clock) : undefined;
  const { identity, version } = options;
  const page = options.makePage?.({ identity, version, checks, leaderships, work, clusters: () => outages.states() });
  const { scraped } = options;
  const server = new HealthServer({ address, port, live, checks, registry, scraped, work, page, profiles, log });
  return {
    name: 'health server',
    async start() {
      try {
        const served = await server.start();
        listening?.(served);
        page?.start();
      } catch (err) {
        throw err instanceof HealthServerError ? new CannotStartError(err.message, { cause: err }) : err;
      }
    },
    stop: () => server.stop(),
  };
}

/** Probing begins before anything else is done, and a cluster that comes back is caught up with before it counts as alive. */
export function probesMember(clusters: Clusters, caches: readonly ClusterCaches[], outages: Outages): Member {
  return {
    name: 'cluster probes',
    async start() {
      for (const probed of probesOf(accessesOf(clusters), caches)) outages.add(probed);
    },
    stop: () => outages.stop(),
  };
}

/** Events are sent when they come up; what waits at the end has a moment. */
export function recorderMember(component: string, recorder: EventRecorder): Member {
  return {
    name: `events of ${component}`,
    start: () => Promise.resolve(),
    stop: () => recorder.stop(RECORDER_STOP_MS),
  };
}

/** Who runs, what it runs, and where. Of the kubeconfigs it names the servers only. */
function startFields({ control, target }: Clusters, { version, identity, config, leases }: StartOptions): LogFields {
  const { program, clusters, controllers, drivers, server } = config;
  return {
    version,
    program,
    identity,
    namespace: clusters.namespace,
    controllers: [...controllers],
    leases,
    control: control.server,
    target: target?.server,
    drivers: drivers.map(({ provider, address }) => `${provider}=${address}`),
    listen: `${server.address}:${server.port}`,
  };
}
