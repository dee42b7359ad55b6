import { MACHINE_LEASE } from '../../kube/leader/names.ts';
import type { Operator } from '../../operator/operator.ts';
import type { Controller } from '../../work/reconcile/controller.ts';
import { SecretController } from './controller.ts';
import { keyOf } from '../../apis/meta.ts';
import type { Caches } from '../../operator/caches.ts';
import type { Queue } from '../../work/workqueue/queue.ts';
import { secretIndex } from '../../operator/indexes/secret-references.ts';

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

/** Enqueues a Secret when it changes and when a class begins or ceases to name it. */
export function wakeSecrets({ secrets, classes }: Pick<Caches, 'secrets' | 'classes'>, queue: Queue): void {
  secrets.onChange((old, current) => {
    const one = current ?? old;
    if (one !== undefined) queue.add(keyOf(one), secrets.hasSynced ? 'normal' : 'low');
  });
  classes.onChange((old, current) => {
    const before = new Set(old === undefined ? [] : secretIndex(old));
    const after = new Set(current === undefined ? [] : secretIndex(current));
    for (const key of new Set([...before, ...after])) {
      if (before.has(key) !== after.has(key)) queue.add(key, classes.hasSynced ? 'normal' : 'low');
    }
  });
}
