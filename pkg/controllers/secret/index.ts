import { MACHINE_LEASE } from '../../kube/leader/names.ts';
import type { Operator } from '../../operator/operator.ts';
import type { Controller } from '../../work/reconcile/controller.ts';
import { keyOf, isBeingDeleted } from '../../apis/meta.ts';
import type { Caches } from '../../operator/caches.ts';
import type { Queue } from '../../work/workqueue/queue.ts';
import { secretIndex, SECRET_INDEX } from '../../operator/indexes/secret-references.ts';
import { SECRET_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import type { Writer } from '../../kube/client/client.ts';
import { secrets as secretResource } from '../../kube/client/resource.ts';
import { Finalizer } from '../../work/reconcile/finalizer.ts';
import { stop, type StepResult } from '../../work/reconcile/result.ts';

/** Holds the Secrets that MachineClasses name. */
export function secret(operator: Operator): Controller {
  const { secrets, classes } = operator.caches;
  const deps = { secrets, classes, writer: operator.under(MACHINE_LEASE).writer };
  return {
    name: 'secret',
    queue: 'secret',
    lease: MACHINE_LEASE,
    concurrency: operator.config.machine.concurrency,
    reconcile: (key, signal) => reconcileSecret(deps, key, signal),
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

/**
 * Holds a Secret for as long as a MachineClass names it, by namespace and name: without its credentials nobody can delete
 * the VMs of the class.
 */
export async function reconcileSecret(
  { secrets, classes, writer }: Pick<Caches, 'secrets' | 'classes'> & { readonly writer: Writer },
  key: string,
  signal: AbortSignal,
): Promise<StepResult> {
  const finalizer = new Finalizer(writer, secretResource, SECRET_FINALIZER);
  const seen = secrets.get(key);
  if (seen === undefined) return stop;
  const isUsed = classes.byIndex(SECRET_INDEX, key).length > 0;
  // No finalizer can be added to what is being deleted.
  if (isUsed && !isBeingDeleted(seen)) await finalizer.add(seen, signal);
  if (!isUsed && finalizer.holds(seen)) await finalizer.remove(seen, signal);
  return stop;
}
