import type { EventRecorder } from '../kube/events/recorder.ts';
import type { Outages } from '../kube/gate/outages.ts';
import { Checks, cachesSynced, clustersReachable, credentialsValid } from '../health/checks.ts';
import { workBegun } from '../health/held-work.ts';
import { Profiles } from '../health/profiles.ts';
import { HealthServer, type HealthServerDeps, HealthServerError } from '../health/server.ts';
import type { LogFields } from '../base/log/logger.ts';
import { CannotStartError, type Member } from './process/lifecycle.ts';
import type { ClusterCaches } from './cluster-caches.ts';
import { type Clusters, accessesOf } from './clusters.ts';
import type { ManagerProcess } from './manager-process.ts';
import { probesOf } from './probes.ts';

const RECORDER_STOP_MS = 4_000;

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

/** Whether a process is ready, by what it has once and by its caches; who has more to do with that adds to it. */
export function readinessOf(process: ManagerProcess, caches: readonly ClusterCaches[]): Checks {
  const { clusters, outages, held } = process;
  const { config, clock } = process.options;
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
  );
  return checks;
}

/** Serves liveness, readiness, metrics, and what else is given. */
export function healthMember(
  { registry, options }: ManagerProcess,
  served: Pick<HealthServerDeps, 'checks' | 'work' | 'page' | 'scraped'>,
): Member {
  const { config, clock, log, hooks } = options;
  const live = new Checks();
  live.add({ name: 'ping', check: () => ({ ok: true }) });
  const { address, profiling } = config.server;
  const listening = typeof hooks?.health === 'function' ? hooks.health : undefined;
  const port = listening === undefined ? config.server.port : 0;
  const profiles = profiling ? new Profiles(clock) : undefined;
  const server = new HealthServer({ ...served, address, port, live, registry, profiles, log });
  return {
    name: 'health server',
    async start() {
      try {
        const servedOn = await server.start();
        listening?.(servedOn);
        served.page?.start();
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
