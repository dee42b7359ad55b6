import { ActivityRegistry } from '../activity/registry.ts';
import type { ActivityResults } from '../controllers/machine/calls/results.ts';
import { Fleet } from '../controllers/machines/fleet.ts';
import { ReplacementPace } from '../controllers/machines/pace.ts';
import { MachineController } from '../controllers/machine/controller.ts';
import { HOLD_KINDS, holdOf } from '../controllers/machines/hold.ts';
import { zoneStates } from '../controllers/machines/zones.ts';
import { MachineClassController } from '../controllers/machine-class/controller.ts';
import { lookForOwnerlessVMs } from '../controllers/machine-class/ownerless-vms.ts';
import { Departures } from '../controllers/safety/departures.ts';
import { GoneMachines } from '../controllers/safety/gone-machines.ts';
import { notingCalls } from '../controllers/safety/noted-calls.ts';
import type { OwnerlessVMs } from '../controllers/safety/ownerless-vms.ts';
import { SecretController } from '../controllers/secret/controller.ts';
import { SecretContents } from '../controllers/class-secrets/secret-contents.ts';
import { createDrainer } from '../drain/drainer.ts';
import { DrainLimits } from '../drain/limits.ts';
import { podsOnNode } from '../drain/node-pods.ts';
import { concernedClusters, isDeletedByForce } from '../driver/concerned-clusters.ts';
import { ConfiguredDrivers } from '../driver/drivers.ts';
import { GatedDriver } from '../driver/gated-driver.ts';
import { isProtected, parseDriverAddress } from '../driver/grpc/address.ts';
import { GrpcDriver } from '../driver/grpc/client.ts';
import { Obedience } from '../driver/obedience.ts';
import { eventsAbout } from '../events/event-sink.ts';
import type { Recorder } from '../events/recorder.ts';
import type { LeaderGate } from '../gate/leader-gate.ts';
import type { Hold, Prerequisite } from '../health/held-work.ts';
import { MACHINE_LEASE, type LeaseElector } from '../leader/elector.ts';
import { HttpListWatch } from '../kube/list-watch.ts';
import { machineClasses, machines as machineResource, pods } from '../kube/resource.ts';
import { machineMetrics } from '../metrics/machine.ts';
import { replacementMetrics } from '../metrics/replacement.ts';
import type { Led } from '../process/leadership.ts';
import type { KeyedQueue } from '../workqueue/keyed-queue.ts';
import type { Base } from './base.ts';
import { fleetOf } from './control-caches.ts';
import type { ControlCaches, TargetCaches } from './control-caches.ts';
import { cachesOf, ledBy, readinessOf, targetsOf, writerOf } from './half.ts';
import { lastResults } from './last-results.ts';
import type { Leadership } from './leadership.ts';
import { makeMachineSafety } from './machine-safety.ts';
import { makeLoop } from './loop.ts';
import { wakeMachineHalf } from './wake-machine-half.ts';

/** How many of each kind of long work run at once. Drains have their own place, so that they never hold up the rest. */
const ACTIVITY_LIMITS = { create: 200, initialize: 200, status: 200, delete: 200, drain: 1_000 };

/** Machines, MachineClasses and Secrets: the work under Lease `machine-controller`. */
export function makeMachineHalf(
  base: Base,
  control: ControlCaches,
  target: TargetCaches | undefined,
  { gate, elector }: Leadership,
  recorder: Recorder,
  ownerless: OwnerlessVMs,
): Led {
  const { config, clock, log, registry, metrics } = base;
  const { machines, classes, secrets } = control;
  const fleet = new Fleet(fleetOf(control));
  const pace = new ReplacementPace({ clock });
  if (classes === undefined || secrets === undefined) throw new Error('the machine half needs caches of its kinds');
  const { reader } = base.control;
  const writer = writerOf(base, base.control, control.caches, gate);
  const contents = new SecretContents({ reader, secrets, classes, clock });
  const drivers = lazyDrivers(base, gate, elector);
  const departures = new Departures();

  const queues = new Map<string, KeyedQueue>();
  const activities = new ActivityRegistry<ActivityResults>({
    clock,
    log,
    metrics: metrics.activity,
    limits: ACTIVITY_LIMITS,
    enqueue: (key) => queues.get('machine')?.add(key),
  });
  const targets = targetsOf(base, target, gate);
  const machineController = new MachineController({
    machines,
    classes,
    secrets: contents,
    fleet,
    pace,
    reader,
    writer,
    targets,
    activities,
    drivers: notingCalls(drivers.drivers, departures),
    drain: makeDrain(base),
    gate,
    trust: gate,
    outages: () => base.freezes.outages(),
    recorder: eventsAbout(machineResource, recorder),
    metrics: machineMetrics(registry, machines),
    clock,
    settings: config.machine,
  });
  replacementMetrics(
    registry,
    {
      held: () => machines.list().flatMap((machine) => holdOf(machine)?.kind ?? []),
      zones: () => zoneStates({ classes, targets }, machines.list(), config.machine.zoneUnhealthyThreshold),
    },
    HOLD_KINDS,
  );
  const classController = new MachineClassController({
    classes,
    machines,
    writer,
    ownerlessVMs: (machineClass, _sinceMs, signal) =>
      lookForOwnerlessVMs(
        { drivers: drivers.drivers, secrets: contents, reader, namespace: config.clusters.namespace },
        machineClass,
        signal,
      ),
    recorder: eventsAbout(machineClasses, recorder),
    clock,
    log,
  });
  const secretController = new SecretController({ secrets, classes, writer });

  const readiness = readinessOf(base, MACHINE_LEASE, target);
  const loopParts = { clock, log, queueMetrics: metrics.queue, reconcileMetrics: metrics.reconcile };
  const { concurrency } = config.machine;
  const machineQueue = makeLoop(loopParts, {
    controller: 'machine',
    queue: 'machine',
    concurrency,
    reconcile: readiness.holding(
      (key, signal, passLog) => machineController.reconcile(key, signal, passLog),
      // Once the target answers, its Node may be looked for, which takes caches that have caught up.
      (key) => isDeletedByForce(machines.get(key)) && readiness.isTargetFrozen,
    ),
  });
  queues.set('machine', machineQueue);
  const classQueue = makeLoop(loopParts, {
    controller: 'machine-class',
    queue: 'machineclass',
    concurrency,
    reconcile: (key, signal) => classController.reconcile(key, signal),
  });
  const secretQueue = makeLoop(loopParts, {
    controller: 'secret',
    queue: 'secret',
    concurrency,
    reconcile: (key, signal) => secretController.reconcile(key, signal),
  });

  const safety = makeMachineSafety(base, control, target, gate, {
    recorder,
    drivers: drivers.drivers,
    contents,
    fleet,
    pace,
    departures,
    gone: new GoneMachines(),
    ownerless,
    readiness,
  });

  const wake = (): void => {
    const { controllers } = config;
    // Before the machine controller forgets what it knew of a Machine that is gone.
    safety.wake();
    const nodes = target === undefined ? [] : [target.nodes];
    const queuesOf = { machineQueue, classQueue, secretQueue };
    wakeMachineHalf({ controllers, machines, classes, secrets, nodes, ...queuesOf, activities, machineController });
  };
  const led = ledBy(base, MACHINE_LEASE, cachesOf(control, target), readiness, wake, [
    lastResults({ clock, queue: machineQueue, activities }),
    classQueue,
    secretQueue,
    ...safety.workers,
  ]);
  return {
    begin: (signal) => led.begin(signal),
    async end(graceMs) {
      await led.end(graceMs);
      await drivers.close();
    },
  };
}

function makeDrain(base: Base): ReturnType<typeof createDrainer> {
  const { clock, log, target: access } = base;
  return createDrainer({
    clock,
    log,
    limits: new DrainLimits(),
    podsOf: (target, nodeName) => {
      if (access === undefined || access.cluster !== target.cluster) {
        throw new Error(`no way to the pods of cluster ${target.cluster}`);
      }
      const selection = { fieldSelector: podsOnNode(nodeName) };
      return new HttpListWatch({ transport: access.transport, resource: pods, selection });
    },
  });
}

/** Shows that what needs the driver of a provider is held, from the first attempt that fails to the first that succeeds. */
function showHeld(
  { held, log }: Base,
  provider: string,
  waitsFor: Prerequisite,
  message: string,
): (why: string | undefined) => void {
  let hold: Hold | undefined;
  return (why) => {
    if (why === undefined) {
      hold?.release();
      hold = undefined;
      return;
    }
    if (hold === undefined) log.warn({ provider, err: why }, message);
    hold ??= held.hold({ work: MACHINE_LEASE, waitsFor, of: provider });
    hold.failed(new Error(why));
  };
}

/** What is done when a driver refuses our fencing token; undefined without leader election, where there is none. */
function obedienceOf(base: Base, provider: string, elector: LeaseElector | undefined): Obedience | undefined {
  if (elector === undefined) return undefined;
  const told = showHeld(base, provider, 'obedience', 'a driver refused our fencing token, and is asked again');
  return new Obedience({ raiseAbove: (token) => elector.raiseAbove(token), told });
}

/** The configured drivers; the identity of the control cluster, under which they tag VMs, is read before leadership begins. */
function lazyDrivers(
  base: Base,
  gate: LeaderGate,
  elector: LeaseElector | undefined,
): { drivers: ConfiguredDrivers; close(): Promise<void> } {
  const { config, clock, log, metrics, hooks, clusterIdentity } = base;
  const clients = config.drivers.map(({ provider, address: text }) => {
    const address = parseDriverAddress(text);
    if (!isProtected(address) && !address.insecure) {
      log.warn(
        { provider, address: address.target },
        'driver is called in plain text: any local user could take its place',
      );
    }
    const show = showHeld(base, provider, 'driver', 'could not connect to a driver, and tries again');
    return { provider, driver: new GrpcDriver({ address, clock, log, greeted: (err) => show(err?.detail) }) };
  });
  const gated = clients.map(
    ({ provider, driver }) =>
      new GatedDriver({
        provider,
        driver,
        gate,
        obedience: obedienceOf(base, provider, elector),
        clustersOf: (machine) => concernedClusters(machine, base.target?.cluster),
        get clusterID() {
          return clusterIdentity.uid;
        },
        clock,
        metrics: metrics.driver,
        ...(hooks?.interceptDriver === undefined ? {} : { interceptor: hooks.interceptDriver }),
        ...(hooks?.driverMutationTimeoutMs === undefined ? {} : { mutationTimeoutMs: hooks.driverMutationTimeoutMs }),
      }),
  );
  return {
    drivers: new ConfiguredDrivers(gated),
    async close() {
      await Promise.all(clients.map(({ driver }) => driver.close()));
    },
  };
}
