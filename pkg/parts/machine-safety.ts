import { ActivityRegistry } from '../activity/registry.ts';
import type { MachineClass } from '../apis/machine/v1alpha1/machine-class.ts';
import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import type { Informer } from '../cache/lister.ts';
import type { Fleet } from '../controllers/machines/fleet.ts';
import type { ReplacementPace } from '../controllers/machines/pace.ts';
import type { Departures } from '../controllers/safety/departures.ts';
import type { GoneMachine, GoneMachines } from '../controllers/safety/gone-machines.ts';
import { Collector } from '../controllers/safety/orphan-vms/collector.ts';
import { OrphanVMsController } from '../controllers/safety/orphan-vms/controller.ts';
import { Evidence } from '../controllers/safety/orphan-vms/evidence.ts';
import { ForgottenMachines } from '../controllers/safety/orphan-vms/forgotten.ts';
import { identify, ownershipOf } from '../controllers/vms/ownership.ts';
import { OrphanBrake } from '../controllers/safety/orphan-vms/brake.ts';
import { VanishedVMs } from '../controllers/safety/orphan-vms/vanished-vms.ts';
import { ORPHAN_VMS_KEY, wakeOrphanVMs } from '../controllers/safety/orphan-vms/wake.ts';
import type { OwnerlessVMs } from '../controllers/safety/ownerless-vms.ts';
import { UnmanagedNodesController } from '../controllers/safety/unmanaged-nodes/controller.ts';
import { wakeNodesOf, wakeUnmanagedNodes } from '../controllers/safety/unmanaged-nodes/wake.ts';
import type { SecretContents } from '../controllers/class-secrets/secret-contents.ts';
import type { ListedMachine } from '../driver/driver.ts';
import type { Drivers } from '../driver/drivers.ts';
import { eventsAbout } from '../events/event-sink.ts';
import type { Recorder } from '../events/recorder.ts';
import { CONTROL } from '../gate/gate.ts';
import type { LeaderGate } from '../gate/leader-gate.ts';
import { machineClasses, machines as machineResource } from '../kube/resource.ts';
import { safetyMetrics, type SafetyMetrics } from '../metrics/safety.ts';
import type { Targets } from '../targets/targets.ts';
import type { KeyedQueue } from '../workqueue/keyed-queue.ts';
import type { Base } from './base.ts';
import type { ControlCaches, TargetCaches } from './control-caches.ts';
import { type Stoppable, targetsOf, writerOf } from './half.ts';
import { makeLoop } from './loop.ts';
import { whenSetBack } from './set-back.ts';
import type { TargetReadiness } from './target-readiness.ts';

/** What the safety loops of the machine half share with the rest of it. */
export interface SafetyShare {
  readonly recorder: Recorder;
  readonly fleet: Fleet;
  readonly pace: ReplacementPace;
  readonly drivers: Drivers;
  readonly contents: SecretContents;
  readonly departures: Departures;
  readonly gone: GoneMachines;
  readonly ownerless: OwnerlessVMs;
  /** Nodes are judged by caches that have caught up only. */
  readonly readiness: TargetReadiness;
}

/** The safety loops of the machine half: `wake` fills their queues from now on. */
export interface MachineSafety {
  wake(): void;
  readonly workers: readonly Stoppable[];
}

/** So many VMs are deleted at once; the rest waits. */
const DELETIONS_AT_ONCE = 20;
const NONE = { create: 1, initialize: 1, status: 1, drain: 1 };

/** VMs without a Machine, Machines without a VM, Nodes without a Machine. */
export function makeMachineSafety(
  base: Base,
  control: ControlCaches,
  target: TargetCaches | undefined,
  gate: LeaderGate,
  share: SafetyShare,
): MachineSafety {
  const { config, registry } = base;
  const { machines, classes } = control;
  if (classes === undefined) throw new Error('the safety of machines needs a cache of their classes');
  const { departures, gone, ownerless, readiness } = share;
  const targets = targetsOf(base, target, gate);
  const metrics = safetyMetrics(registry, () => ownerless.list().length);
  const nodeQueue = makeNodeLoop(base, machines, targets, gone, metrics, readiness);
  const log = base.log.child({ controller: 'safety.orphan-vms' });
  const forgotten = new ForgottenMachines({ classes, recorder: eventsAbout(machineClasses, share.recorder), log });
  const orphans = makeOrphanLoop(base, control, classes, { ...share, gate, targets, metrics, nodeQueue, forgotten });
  return {
    workers: [orphans.queue, orphans.activities, nodeQueue],
    wake() {
      const runs = config.controllers;
      whenSetBack(base.freezes, () => {
        gone.clear();
        if (runs.has('safety.orphan-vms')) forgotten.add(departures.missed);
      });
      if (runs.has('safety.orphan-vms')) {
        const { queue, controller } = orphans;
        const deletedLate = (machine: GoneMachine): void => wakeNodesOf(targets.all(), nodeQueue, machine);
        wakeOrphanVMs({
          machines,
          classes,
          queue,
          controller,
          trust: gate,
          departures,
          gone,
          ownerless,
          deletedLate,
          log,
        });
      }
      if (runs.has('safety.unmanaged-nodes'))
        wakeUnmanagedNodes({ machines, targets: targets.all(), queue: nodeQueue });
    },
  };
}

function loopParts({ clock, log, metrics }: Base): Parameters<typeof makeLoop>[0] {
  return { clock, log, queueMetrics: metrics.queue, reconcileMetrics: metrics.reconcile };
}

function makeNodeLoop(
  base: Base,
  machines: Informer<Machine>,
  targets: Targets,
  gone: GoneMachines,
  metrics: SafetyMetrics,
  readiness: TargetReadiness,
): KeyedQueue {
  const { config, clock, log, control } = base;
  const controller = new UnmanagedNodesController({
    targets,
    machines,
    gone,
    reader: control.reader,
    namespace: config.clusters.namespace,
    metrics,
    clock,
    log: log.child({ controller: 'safety.unmanaged-nodes' }),
    creationTimeoutMs: config.machine.creationTimeoutMs,
  });
  return makeLoop(loopParts(base), {
    controller: 'safety.unmanaged-nodes',
    queue: 'machinesafetyunmanagednodes',
    concurrency: config.machine.concurrency,
    reconcile: readiness.holding(
      (key, signal) => controller.reconcile(key, signal),
      () => false,
    ),
  });
}

interface OrphanLoop {
  readonly controller: OrphanVMsController;
  readonly queue: KeyedQueue;
  readonly activities: ActivityRegistry;
}

function makeOrphanLoop(
  base: Base,
  control: ControlCaches,
  classes: Informer<MachineClass>,
  shared: SafetyShare & {
    gate: LeaderGate;
    targets: Targets;
    metrics: SafetyMetrics;
    nodeQueue: KeyedQueue;
    forgotten: ForgottenMachines;
  },
): OrphanLoop {
  const { config, clock } = base;
  const { machines } = control;
  const { gate, targets, metrics, nodeQueue, recorder, fleet, pace, ownerless, gone, departures, drivers } = shared;
  const { contents, forgotten } = shared;
  const log = base.log.child({ controller: 'safety.orphan-vms' });
  const queues = new Map<string, KeyedQueue>();
  const activities = new ActivityRegistry({
    clock,
    log,
    metrics: { track: () => undefined, settled: (...ended) => base.metrics.activity.settled(...ended) },
    limits: { ...NONE, delete: DELETIONS_AT_ONCE },
    enqueue: (key) => queues.get(key)?.add(key),
  });
  const isDryRun = config.safety.orphanVMsDryRun;
  const classEvents = eventsAbout(machineClasses, recorder);
  const collector = new Collector(ORPHAN_VMS_KEY, {
    activities,
    recorder: classEvents,
    metrics,
    log,
    isDryRun,
    isOwned(vm: ListedMachine, listed) {
      const ofIt = [...machines.byIndex('providerID', vm.providerID), ...machines.byIndex('name', vm.machineName)];
      return ownershipOf(vm, identify(ofIt), listed) !== 'none';
    },
    namesakeOf: ({ machineName }) => machines.byIndex('name', machineName)[0],
    collected({ providerID, machineName }) {
      ownerless.remove(providerID);
      // Nobody has recorded what its Node is called.
      const machine = { name: machineName, nodeName: machineName, providerID };
      gone.add(machine);
      wakeNodesOf(targets.all(), nodeQueue, machine);
    },
  });
  const reader = base.control.reader;
  const graceMs = config.safety.orphanVMsGraceMs;
  const missingVMs = new Evidence(graceMs);
  const vanished = new VanishedVMs(
    {
      machines,
      classes,
      reader,
      writer: writerOf(base, base.control, control.caches, gate),
      targets,
      trust: gate,
      fleet,
      pace,
      recorder: eventsAbout(machineResource, recorder),
      metrics,
      clock,
      log,
      settings: config.machine,
    },
    missingVMs,
  );
  const controller = new OrphanVMsController({
    drivers,
    secrets: contents,
    reader,
    namespace: config.clusters.namespace,
    classes,
    machines,
    collector,
    brake: new OrphanBrake({ recorder: classEvents, metrics, forgotten, clock, log, isDryRun }),
    forgotten,
    recorder: classEvents,
    vanished,
    missingVMs,
    orphans: new Evidence(graceMs),
    ownerless,
    gone,
    departures,
    trust: gate,
    clusters: [CONTROL, ...targets.all().map(({ cluster }) => cluster)],
    clock,
    log,
    periodMs: config.safety.orphanVMsPeriodMs,
    graceMs,
  });
  const queue = makeLoop(loopParts(base), {
    controller: 'safety.orphan-vms',
    queue: 'machinesafetyorphanvms',
    concurrency: 1,
    reconcile: (_key, signal) => controller.reconcile(signal),
  });
  queues.set(ORPHAN_VMS_KEY, queue);
  return { controller, queue, activities };
}
