import { isBeingDeleted, keyOf } from '../../apis/meta.ts';
import { eventsAbout } from '../../kube/events/event-sink.ts';
import { CONTROL } from '../../kube/gate/gate.ts';
import {
  machineDeployments as deploymentResource,
  machineSets as machineSetResource,
} from '../../kube/client/resource.ts';
import { MACHINE_LEASE, MANAGER_LEASE } from '../../kube/leader/names.ts';
import { machineDeploymentMetrics } from './metrics.ts';
import type { Operator } from '../../operator/operator.ts';
import type { Controller } from '../../work/reconcile/controller.ts';
import type { OwnerDeps } from '../replicas/owner-deps.ts';
import { restMsFor } from '../replicas/rest.ts';
import { machineDeploymentController } from './controller.ts';
import { MACHINE_DEPLOYMENT_EVENT_SOURCE } from './events.ts';
import { showOutage } from './outage-condition.ts';
import { rolloutMetrics } from './rollout/rollout-metrics.ts';
import { wakeMachineDeployments } from './wake.ts';
import { ownedMachines } from './observed.ts';

/** Keeps the MachineSets of a MachineDeployment, and rolls its Machines from one to the next. */
export function machineDeployment(operator: Operator, deps: OwnerDeps): Controller {
  const { registry, config, clock } = operator;
  const { machineDeployments, machineSets, machines, targets } = deps;
  const recorder = operator.recorder(MACHINE_DEPLOYMENT_EVENT_SOURCE);
  machineDeploymentMetrics(registry, () => machineDeployments.list());
  rolloutMetrics(registry, { machineDeployments, machineSets, machines, clock });
  const machineGate = config.controllers.has('machine') ? operator.under(MACHINE_LEASE).gate : undefined;
  const controller = machineDeploymentController({
    ...deps,
    recorder: eventsAbout(deploymentResource, recorder),
    random: operator.random,
    setRecorder: eventsAbout(machineSetResource, recorder),
    holdsScaleDownDuringRollout: config.sets.annotateForAutoscaler,
    holdsJoiningNodes: config.controllers.has('machine'),
    leadsMachines: () => machineGate !== undefined && machineGate.trustedForMs([CONTROL]) > 0,
  });
  return {
    name: 'machine-deployment',
    queue: 'machinedeployment',
    lease: MANAGER_LEASE,
    concurrency: config.sets.concurrency,
    report: (key, signal) => showOutage(deps, key, operator.outages, signal),
    reconcile: (key, signal) => controller.reconcile(key, signal),
    requiresTarget: (key) => {
      const seen = machineDeployments.get(key);
      return seen === undefined || !isBeingDeleted(seen);
    },
    restMs: (key) => {
      const deployment = machineDeployments.get(key);
      return deployment === undefined ? 0 : restMsFor(ownedMachines(deps, deployment).length);
    },
    watches: [
      (queue) => wakeMachineDeployments(deps, targets, queue),
      (queue) => {
        operator.onOutage(() => {
          for (const deployment of machineDeployments.list()) queue.add(keyOf(deployment));
        });
      },
    ],
  };
}
