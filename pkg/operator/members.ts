import type { EventRecorder } from '../kube/events/recorder.ts';
import type { Outages } from '../kube/gate/outages.ts';
import {
  type Check,
  Checks,
  cachesSynced,
  clustersReachable,
  credentialsValid,
  leadership as leadershipCheck,
} from '../health/checks.ts';
import { workBegun } from '../health/held-work.ts';
import type { Page } from '../health/page.ts';
import { Profiles } from '../health/profiles.ts';
import { HealthServer, type HealthServerDeps, HealthServerError } from '../health/server.ts';
import type { WorkInProgress } from '../health/work-in-progress.ts';
import type { LogFields } from '../base/log/logger.ts';
import { CannotStartError, type Member } from './process/lifecycle.ts';
import type { ClusterCaches } from './cluster-caches.ts';
import { type Clusters, accessesOf } from './clusters.ts';
import type { OwnLeadership } from './leadership.ts';
import type { ManagerProcess } from './manager-process.ts';
import { probesOf } from './probes.ts';

const RECORDER_STOP_MS = 4_000;

/** What is served about a process beside what it has once. */
interface HealthOptions {
  /** Told of the port, a free one; undefined: it is the one of the flags. */
  readonly listening: ((port: number) => void) | undefined;
  readonly caches: readonly ClusterCaches[];
  readonly leaderships: readonly Pick<OwnLeadership, 'lease' | 'elector'>[];
  /** Undefined: nothing is done about Machines. */
  readonly work: (() => WorkInProgress) | undefined;
  readonly makePage?: ((checks: Checks) => Page) | undefined;
  /** See HealthServerDeps. */
  readonly scraped?: HealthServerDeps['scraped'];
  /** Further checks of readiness. */
  readonly checks?: readonly Check[];
}

/** Starts first, with a line in the log, so that connections are closed when everything else has ended. */
export function connectionsMember(process: ManagerProcess, leases: readonly string[]): Member {
  const { clusters, thread, options } = process;
  return {
    name: 'connections',
    start() {
      options.log.info(startFields(process, leases), 'started the process');
      return Promise.resolve();
    },
    async stop() {
      await thread?.close();
      for (const { transport } of accessesOf(clusters)) await transport.close();
    },
  };
}

/** Liveness, readiness and metrics. */
export function healthMember(process: ManagerProcess, options: HealthOptions): Member {
  const { registry, clusters, outages, held } = process;
  const { config, clock, log } = process.options;
  const { caches, work, leaderships, listening, scraped } = options;
  const checks = new Checks();
  checks.add(
    cachesSynced(() => caches.flatMap(({ synced }) => [...synced])),
    clustersReachable(
      () => outages.states(),
      () => clock.monotonicMs(),
    ),
    credentialsValid(
      () => accessesOf(clusters).map(({ cluster, endpoint }) => ({ cluster, state: endpoint.state })),
      () => clock.monotonicMs(),
      config.leader.renewDeadlineMs,
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
  const { address, profiling } = config.server;
  const port = listening === undefined ? config.server.port : 0;
  const profiles = profiling ? new Profiles(clock) : undefined;
  const page = options.makePage?.(checks);
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
function startFields({ clusters: { control, target }, options }: ManagerProcess, leases: readonly string[]): LogFields {
  const { version, identity } = options;
  const { program, clusters, controllers, drivers, server } = options.config;
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
