import { MACHINE_EVENT_SOURCE } from '../controllers/machines/events.ts';
import { MACHINE_DEPLOYMENT_EVENT_SOURCE } from '../controllers/machine-deployment/events.ts';
import { MACHINE_SET_EVENT_SOURCE } from '../controllers/replicas/events.ts';
import { OwnerlessVMs } from '../controllers/safety/ownerless-vms.ts';
import { EventRecorder } from '../events/recorder.ts';
import { OpenFence } from '../gate/fence.ts';
import { LeaderGate } from '../gate/leader-gate.ts';
import { Checks, cachesSynced, clustersReachable, leadership as leadershipCheck } from '../health/checks.ts';
import { workBegun } from '../health/held-work.ts';
import { HealthServer, HealthServerError } from '../health/server.ts';
import { MACHINE_LEASE, MANAGER_LEASE } from '../leader/elector.ts';
import type { LeaseThread } from '../leader/lease-thread.ts';
import { type Led, underLease } from '../process/leadership.ts';
import { CannotStartError, type HostProcess, Lifecycle, type Member } from '../process/lifecycle.ts';
import { type Base, makeBase, type ManagerOptions } from './base.ts';
import type { Caches } from './caches.ts';
import { halvesOf, makeControlCaches, makeTargetCaches } from './control-caches.ts';
import { FreezeNews } from './freeze-news.ts';
import { cachesOf, writerOf } from './half.ts';
import { type Leadership, makeLeadership, makeLeaseThread } from './leadership.ts';
import { makeMachineHalf } from './machine-half.ts';
import { probesOf } from './probes.ts';
import { makeSetHalf } from './set-half.ts';
import { startFields } from './start-line.ts';

/*
 * The composition root: builds every part once, in the order in which data flows.
 *
 *  kube-apiserver ──watch──▶ cache ──key──▶ workqueue ──▶ reconcile ──▶ steps ──▶ gate ──▶ kube client (patch)
 *                               ▲ read-only ────────────────────────────┘   └──▶ activity ──▶ gate ──▶ driver ──▶ cloud
 */

const RECORDER_STOP_MS = 2_000;

/**
 * A process with the configured controllers, not yet started: `run` starts it and resolves with the exit code. Throws ConfigError
 * for an unusable kubeconfig and DriverAddressError for an unusable address.
 */
export async function buildManager(options: ManagerOptions, host: HostProcess): Promise<Lifecycle> {
  const base = await makeBase(options);
  const { clock, log, config, freezes } = base;
  const lifecycle = new Lifecycle({ clock, log, host });
  const halves = halvesOf(base);
  const control = makeControlCaches(base, halves);
  const target = makeTargetCaches(base, halves);
  const caches = cachesOf(control, target);

  // Events only report: they need no leadership, so that also the end of one can be told.
  const reporting = new LeaderGate({ ...gateParts(base), fence: new OpenFence({ clock }) });
  const writer = writerOf(base, base.control, control.caches, reporting);
  const recorder = (component: string): EventRecorder =>
    new EventRecorder({ source: { component }, writer, clock, log, metrics: base.metrics.event });
  const recorders = {
    sets: recorder(MACHINE_SET_EVENT_SOURCE),
    deployments: recorder(MACHINE_DEPLOYMENT_EVENT_SOURCE),
    machines: recorder(MACHINE_EVENT_SOURCE),
  };

  const thread = makeLeaseThread(base);
  const lead = (name: string, announcer: EventRecorder): Leadership =>
    makeLeadership({
      name,
      identity: options.identity,
      config,
      transport: base.control.transport,
      thread,
      freezes,
      clock,
      log,
      gateMetrics: base.metrics.gate,
      leaderMetrics: base.metrics.leader,
      recorder: () => announcer,
      lost: (reason) => lifecycle.fatal(reason),
    });
  const ownerless = new OwnerlessVMs();
  const news = new FreezeNews({ clock, freezes });
  const work: { leadership: Leadership; led: Led; recorder: EventRecorder }[] = [];
  if (halves.sets) {
    const leadership = lead(MANAGER_LEASE, recorders.deployments);
    work.push({
      leadership,
      led: makeSetHalf(base, control, target, leadership.gate, recorders, ownerless),
      recorder: recorders.deployments,
    });
  }
  if (halves.machines) {
    const leadership = lead(MACHINE_LEASE, recorders.machines);
    work.push({
      leadership,
      led: makeMachineHalf(base, control, target, leadership, recorders.machines, ownerless),
      recorder: recorders.machines,
    });
  }

  const leases = work.flatMap(({ leadership: { name, elector } }) => (elector === undefined ? [] : [name]));
  lifecycle.add(connectionsMember(base, leases, thread));
  lifecycle.add(
    healthMember(
      base,
      caches,
      work.map(({ leadership }) => leadership),
    ),
  );
  lifecycle.add(freezesMember(base, caches));
  lifecycle.add(...caches, ...(halves.machines && config.drivers.length > 0 ? [base.clusterIdentity] : []));
  lifecycle.add(...Object.entries(recorders).map(([name, one]) => recorderMember(name, one)));
  const underLeases = work.map(({ leadership: { name, elector }, led, recorder: announcer }) =>
    underLease(name, elector, news.readBy({ elector, recorder: announcer }, led)),
  );
  lifecycle.add(...underLeases);
  return lifecycle;
}

function gateParts({
  clock,
  freezes,
  metrics,
  config,
}: Base): Omit<ConstructorParameters<typeof LeaderGate>[0], 'fence'> {
  return { clock, freezes, metrics: metrics.gate, graceMs: config.safety.graceMs };
}

function healthMember(base: Base, caches: readonly Caches[], leaderships: readonly Leadership[]): Member {
  const { config, registry, log, freezes, clock, held } = base;
  const checks = new Checks();
  checks.add(cachesSynced(() => caches.flatMap(({ synced }) => [...synced])));
  checks.add(
    clustersReachable(
      () => freezes.states(),
      () => clock.monotonicMs(),
    ),
  );
  checks.add(
    workBegun(
      () => held.list(),
      (cluster) => freezes.state(cluster)?.frozen === true,
    ),
  );
  for (const { name, elector } of leaderships) if (elector !== undefined) checks.add(leadershipCheck(name, elector));
  const server = new HealthServer({ ...config.server, checks, registry, log });
  return {
    name: 'health server',
    async start() {
      try {
        await server.start();
      } catch (err) {
        throw err instanceof HealthServerError ? new CannotStartError(err.message, { cause: err }) : err;
      }
    },
    stop: () => server.stop(),
  };
}

/** Probing begins before anything else is done, and a cluster that comes back is caught up with before it counts as alive. */
function freezesMember(base: Base, caches: readonly Caches[]): Member {
  const { freezes, control, target } = base;
  return {
    name: 'cluster probes',
    async start() {
      const clusters = [control, ...(target === undefined ? [] : [target])];
      for (const probed of probesOf(clusters, caches)) freezes.add(probed);
    },
    stop: () => freezes.stop(),
  };
}

function recorderMember(name: string, recorder: EventRecorder): Member {
  return { name: `events of ${name}`, start: () => Promise.resolve(), stop: () => recorder.stop(RECORDER_STOP_MS) };
}

/** Added first, so that connections are closed when everything else has ended. */
function connectionsMember(base: Base, leases: readonly string[], thread: LeaseThread | undefined): Member {
  const { control, target, log } = base;
  return {
    name: 'connections',
    start() {
      log.info(startFields(base, leases), 'started the process');
      return Promise.resolve();
    },
    async stop() {
      await thread?.close();
      for (const access of new Set([control, target])) await access?.transport.close();
    },
  };
}
