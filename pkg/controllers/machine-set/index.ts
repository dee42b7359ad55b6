import { isBeingDeleted } from '../../apis/meta.ts';
import { eventsAbout } from '../../kube/events/event-sink.ts';
import { machineSets as machineSetResource } from '../../kube/client/resource.ts';
import { MANAGER_LEASE } from '../../kube/leader/names.ts';
import { machineSetMetrics } from './metrics.ts';
import { CONTROLLER_INDEX } from '../../operator/indexes/owner-index.ts';
import type { Operator } from '../../operator/operator.ts';
import type { Controller } from '../../work/reconcile/controller.ts';
import { Expectations } from '../../work/reconcile/expectations.ts';
import { MACHINE_SET_EVENT_SOURCE } from '../replicas/events.ts';
import type { OwnerDeps } from '../replicas/owner-deps.ts';
import { restMsFor } from '../replicas/rest.ts';
import { machineSetController } from './controller.ts';
import { randomSuffix } from './new-machine.ts';
import { wakeMachineSets } from './wake.ts';

export function machineSet(operator: Operator, deps: OwnerDeps): Controller {
  const { clock, registry, config } = operator;
  const { machineSets } = deps;
  const expectations = new Expectations({ clock });
  operator.onSetBack(() => expectations.doubt());
  const controller = machineSetController({
    ...deps,
    expectations,
    recorder: eventsAbout(machineSetResource, operator.recorder(MACHINE_SET_EVENT_SOURCE)),
    safetyRecorder: eventsAbout(machineSetResource, operator.recorder(MANAGER_LEASE)),
    metrics: machineSetMetrics(registry, () => machineSets.list()),
    nodeConditions: config.machine.nodeConditions,
    random: operator.random,
    newSuffix: () => randomSuffix(operator.random),
  });
  return {
    name: 'machine-set',
    queue: 'machineset',
    lease: MANAGER_LEASE,
    concurrency: config.sets.concurrency,
    reconcile: (key, signal) => controller.reconcile(key, signal),
    requiresTarget: (key) => {
      const seen = machineSets.get(key);
      return seen === undefined || !isBeingDeleted(seen);
    },
    restMs: (key) => {
      const uid = machineSets.get(key)?.metadata.uid;
      return uid === undefined ? 0 : restMsFor(deps.machines.byIndex(CONTROLLER_INDEX, uid).length);
    },
    watches: [(queue) => wakeMachineSets(operator.caches, queue)],
  };
}
