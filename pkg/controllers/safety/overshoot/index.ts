import { eventsAbout } from '../../../events/event-sink.ts';
import { machineSets as machineSetResource } from '../../../kube/resource.ts';
import { MANAGER_LEASE } from '../../../leader/names.ts';
import type { Operator } from '../../../operator/operator.ts';
import type { Controller } from '../../../reconcile/controller.ts';
import type { OwnerlessVMs } from '../ownerless-vms.ts';
import { OvershootController } from './controller.ts';
import { wakeOvershoot } from './wake.ts';

/** Freezes MachineSets that have too many Machines. */
export function overshoot(operator: Operator, ownerless: OwnerlessVMs): Controller {
  const { clock, log, config } = operator;
  const { machines, machineSets, machineDeployments } = operator.caches;
  const controller = new OvershootController({
    machines,
    machineSets,
    machineDeployments,
    ownerless,
    writer: operator.under(MANAGER_LEASE).writer,
    recorder: eventsAbout(machineSetResource, operator.recorder(MANAGER_LEASE)),
    clock,
    log,
    margins: config.safety,
    periodMs: config.safety.overshootingPeriodMs,
  });
  return {
    name: 'safety.overshoot',
    queue: 'machinesafetyovershooting',
    lease: MANAGER_LEASE,
    concurrency: 1,
    reconcile: (_key, signal) => controller.reconcile(signal),
    needsTarget: () => true,
    watches: [(queue) => wakeOvershoot(operator.caches, queue, (uid) => controller.released(uid))],
  };
}
