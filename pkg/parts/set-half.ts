import { isBeingDeleted, keyOf } from '../apis/meta.ts';
import type { KubeObject } from '../apis/meta.ts';
import { MachineDeploymentController } from '../controllers/machine-deployment/controller.ts';
import { FreezeCondition } from '../controllers/machine-deployment/freeze-condition.ts';
import { wakeMachineDeployments } from '../controllers/machine-deployment/wake.ts';
import { CreationBrake } from '../controllers/replicas/creation-brake.ts';
import { MachineSetController } from '../controllers/machine-set/controller.ts';
import { OvershootController } from '../controllers/safety/overshoot/controller.ts';
import { wakeOvershoot } from '../controllers/safety/overshoot/wake.ts';
import type { OwnerlessVMs } from '../controllers/safety/ownerless-vms.ts';
import { randomSuffix } from '../controllers/machine-set/new-machine.ts';
import { wakeMachineSets } from '../controllers/machine-set/wake.ts';
import { eventsAbout } from '../events/event-sink.ts';
import type { Recorder } from '../events/recorder.ts';
import { machineDeployments, machineSets } from '../kube/resource.ts';
import type { LeaderGate } from '../gate/leader-gate.ts';
import { MANAGER_LEASE } from '../leader/elector.ts';
import { machineDeploymentMetrics } from '../metrics/machine-deployment.ts';
import { machineSetMetrics } from '../metrics/machine-set.ts';
import type { Led } from '../process/leadership.ts';
import { Expectations } from '../reconcile/expectations.ts';
import type { Base } from './base.ts';
import type { ControlCaches, TargetCaches } from './control-caches.ts';
import { cachesOf, ledBy, readinessOf, targetsOf, writerOf } from './half.ts';
import { makeLoop } from './loop.ts';
import { whenSetBack } from './set-back.ts';

/** Who the Events of this half come from. */
export interface SetHalfRecorders {
  /** `machineset-controller`. */
  readonly sets: Recorder;
  /** `machine-controller-manager`. */
  readonly deployments: Recorder;
}

/** MachineDeployments and MachineSets: the work under Lease `machine-controller-manager`. */
export function makeSetHalf(
  base: Base,
  control: ControlCaches,
  target: TargetCaches | undefined,
  gate: LeaderGate,
  recorders: SetHalfRecorders,
  ownerless: OwnerlessVMs,
): Led {
  const { config, clock, log, registry, metrics } = base;
  const { machines, sets, deployments } = control;
  const shared = {
    reader: base.control.reader,
    writer: writerOf(base, base.control, control.caches, gate),
    targets: targetsOf(base, target, gate),
    clock,
    log,
  };
  const expectations = new Expectations({ clock });
  machineDeploymentMetrics(registry, () => deployments.list());
  const brake = new CreationBrake({ clock });
  const setController = new MachineSetController({
    ...shared,
    machineSets: sets,
    machineDeployments: deployments,
    machines,
    expectations,
    brake,
    recorder: eventsAbout(machineSets, recorders.sets),
    safetyRecorder: eventsAbout(machineSets, recorders.deployments),
    metrics: machineSetMetrics(registry, () => sets.list()),
    nodeConditions: config.machine.nodeConditions,
    newSuffix: randomSuffix,
  });
  const deploymentController = new MachineDeploymentController({
    ...shared,
    machineDeployments: deployments,
    machineSets: sets,
    machines,
    recorder: eventsAbout(machineDeployments, recorders.deployments),
    setRecorder: eventsAbout(machineSets, recorders.deployments),
    brake,
    holdsScaleDownDuringRollout: config.sets.annotateForAutoscaler,
  });
  const freezeCondition = new FreezeCondition({
    ...shared,
    machineDeployments: deployments,
    outages: () => base.freezes.outages(),
  });
  const overshoot = new OvershootController({
    ...shared,
    machines,
    machineSets: sets,
    machineDeployments: deployments,
    ownerless,
    recorder: eventsAbout(machineSets, recorders.deployments),
    margins: config.safety,
    periodMs: config.safety.overshootingPeriodMs,
  });

  const readiness = readinessOf(base, MANAGER_LEASE, target);
  const loopParts = { clock, log, queueMetrics: metrics.queue, reconcileMetrics: metrics.reconcile };
  const { concurrency } = config.sets;
  const setQueue = makeLoop(loopParts, {
    controller: 'machine-set',
    queue: 'machineset',
    concurrency,
    reconcile: readiness.holding(
      (key, signal) => setController.reconcile(key, signal),
      (key) => isGoing(sets.get(key)),
    ),
  });
  const reconcileDeployment = readiness.holding(
    (key, signal) => deploymentController.reconcile(key, signal),
    (key) => isGoing(deployments.get(key)),
  );
  const deploymentQueue = makeLoop(loopParts, {
    controller: 'machine-deployment',
    queue: 'machinedeployment',
    concurrency,
    reconcile: async (key, signal, passLog) => {
      await freezeCondition.show(key, signal);
      return reconcileDeployment(key, signal, passLog);
    },
  });
  const overshootQueue = makeLoop(loopParts, {
    controller: 'safety.overshoot',
    queue: 'machinesafetyovershooting',
    concurrency: 1,
    reconcile: readiness.holding(
      (_key, signal) => overshoot.reconcile(signal),
      () => false,
    ),
  });
  whenSetBack(base.freezes, () => expectations.doubt());
  const wake = (): void => {
    const informers = { machines, machineSets: sets, machineDeployments: deployments };
    if (config.controllers.has('machine-set')) wakeMachineSets({ ...informers, queue: setQueue });
    if (config.controllers.has('machine-deployment')) {
      const nodes = target === undefined ? [] : [target.nodes];
      const queue = deploymentQueue;
      wakeMachineDeployments({ ...informers, nodes, queue });
      base.freezes.onChange(() => {
        for (const deployment of deployments.list()) queue.add(keyOf(deployment));
      });
    }
    if (config.controllers.has('safety.overshoot')) {
      wakeOvershoot({ ...informers, queue: overshootQueue, released: (uid) => overshoot.released(uid) });
    }
  };
  const queues = [setQueue, deploymentQueue, overshootQueue];
  return ledBy(base, MANAGER_LEASE, cachesOf(control, target), readiness, wake, queues);
}

function isGoing(object: KubeObject | undefined): boolean {
  return object !== undefined && isBeingDeleted(object);
}
