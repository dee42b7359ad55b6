import { MACHINE_LEASE } from '../../kube/leader/names.ts';
import type { Operator } from '../../operator/operator.ts';
import type { Controller } from '../../work/reconcile/controller.ts';
import { SecretController } from './controller.ts';
import { wakeSecrets } from './wake.ts';

/** Holds the Secrets that MachineClasses name. */
export function secret(operator: Operator): Controller {
  const { secrets, classes } = operator.caches;
  const controller = new SecretController({ secrets, classes, writer: operator.under(MACHINE_LEASE).writer });
  return {
    name: 'secret',
    queue: 'secret',
    lease: MACHINE_LEASE,
    concurrency: operator.config.machine.concurrency,
    reconcile: (key, signal) => controller.reconcile(key, signal),
    requiresTarget: () => false,
    watches: [(queue) => wakeSecrets(operator.caches, queue)],
  };
}
