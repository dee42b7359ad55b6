import { eventsAbout } from '../../../kube/events/event-sink.ts';
import { machineSets as machineSetResource } from '../../../kube/client/resource.ts';
import { MANAGER_LEASE } from '../../../kube/leader/names.ts';
import type { Operator } from '../../../operator/operator.ts';
import type { Controller } from '../../../work/reconcile/controller.ts';
import type { OwnerDeps } from '../../replicas/owner-deps.ts';
import type { OwnerlessVMs } from '../ownerless-vms.ts';
import { OvershootController } from './controller.ts';
import { wakeOvershoot } from './wake.ts';

/** Freezes MachineSets that have too many Machines. */
export function overshoot(operator: Operator, deps: OwnerDeps, ownerless: OwnerlessVMs): Controller {
  const { safety } = operator.config;
  const controller = new OvershootController({
    ...deps,
    ownerless,
    recorder: eventsAbout(machineSetResource, operator.recorder(MANAGER_LEASE)),
    margins: safety,
    periodMs: safety.overshootingPeriodMs,
  });
  return {
    name: 'safety.overshoot',
    queue: 'machinesafetyovershooting',
    lease: MANAGER_LEASE,
    concurrency: 1,
    reconcile: (_key, signal) => controller.reconcile(signal),
    requiresTarget: () => true,
    watches: [(queue) => wakeOvershoot(deps, queue, (uid) => controller.released(uid))],
  };
}
