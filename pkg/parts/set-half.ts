import { MachineDeploymentController } from '../controllers/machine-deployment/controller.ts';
import { wakeMachineDeployments } from '../controllers/machine-deployment/wake.ts';
import { MachineSetController } from '../controllers/machine-set/controller.ts';
import { randomSuffix } from '../controllers/machine-set/new-machine.ts';
import { wakeMachineSets } from '../controllers/machine-set/wake.ts';
import { eventsAbout } from '../events/event-sink.ts';
import type { Recorder } from '../events/recorder.ts';
import { machineDeployments, machineSets } from '../kube/resource.ts';
import type { LeaderGate } from '../gate/leader-gate.ts';
import { machineDeploymentMetrics } from '../metrics/machine-deployment.ts';
import { machineSetMetrics } from '../metrics/machine-set.ts';
import type { Led } from '../process/leadership.ts';
import { Expectations } from '../reconcile/expectations.ts';
import type { Base } from './base.ts';
import type { ControlCaches, TargetCaches } from './control-caches.ts';
import { ledBy, targetsOf, writerOf } from './half.ts';
import { makeLoop } from './loop.ts';

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
): Led {
  const { config, clock, log, registry, metrics } = base;
  const { machines, sets, deployments } = control;
  if (sets === undefined || deployments === undefined) throw new Error('the set half needs caches of its kinds');
  const shared = {
    reader: base.control.reader,
    writer: writerOf(base, base.control, control.caches, gate),
    targets: targetsOf(base, target, gate),
    clock,
    log,
  };
  machineDeploymentMetrics(registry, () => deployments.list());
  const setController = new MachineSetController({
    ...shared,
    machineSets: sets,
    machines,
    expectations: new Expectations({ clock }),
    recorder: eventsAbout(machineSets, recorders.sets),
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
    holdsScaleDownDuringRollout: config.sets.annotateForAutoscaler,
  });

  const loopParts = { clock, log, queueMetrics: metrics.queue, reconcileMetrics: metrics.reconcile };
  const { concurrency } = config.sets;
  const setQueue = makeLoop(loopParts, {
    controller: 'machine-set',
    queue: 'machineset',
    concurrency,
    reconcile: (key, signal) => setController.reconcile(key, signal),
  });
  const deploymentQueue = makeLoop(loopParts, {
    controller: 'machine-deployment',
    queue: 'machinedeployment',
    concurrency,
    reconcile: (key, signal) => deploymentController.reconcile(key, signal),
  });
  const wake = (): void => {
    if (config.controllers.has('machine-set')) wakeMachineSets({ machineSets: sets, machines, queue: setQueue });
    if (config.controllers.has('machine-deployment')) {
      wakeMachineDeployments({ machineDeployments: deployments, machineSets: sets, machines, queue: deploymentQueue });
    }
  };
  const kinds = [...control.caches.kinds, ...(target?.caches.kinds ?? [])];
  return ledBy(base, kinds, wake, [setQueue, deploymentQueue]);
}
