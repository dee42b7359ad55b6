import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import { isBeingDeleted, keyOf } from '../../apis/meta.ts';
import type { KubeObject } from '../../apis/meta.ts';
import type { Informer, Lister } from '../../cache/lister.ts';
import type { Queue } from '../../workqueue/queue.ts';
import { CLASS_INDEX } from '../../indexes/class-index.ts';
import { SECRET_INDEX, secretIndex } from '../../indexes/secret-references.ts';

/** What tells the Secret controller, and the Machines that depend on a Secret, that there is work. */
export interface SecretWakeParts {
  readonly secrets: Informer<KubeObject>;
  /** With the index SECRET_INDEX. */
  readonly classes: Informer<MachineClass>;
  /** With the index CLASS_INDEX. */
  readonly machines: Lister<Machine>;
  /** Keys of Secrets. */
  readonly queue: Queue;
  /** Keys of Machines. */
  readonly machineQueue: Queue;
}

/**
 * Enqueues a Secret when it changes and when a class begins or ceases to name it; and the Machines whose class names a
 * Secret when that appears, changes or vanishes.
 */
export function wakeSecrets({ secrets, classes, machines, queue, machineQueue }: SecretWakeParts): void {
  secrets.onChange((old, current) => {
    const secret = current ?? old;
    if (secret === undefined) return;
    queue.add(keyOf(secret), secrets.hasSynced ? 'normal' : 'low');
    for (const machineClass of classes.byIndex(SECRET_INDEX, keyOf(secret))) {
      for (const machine of machines.byIndex(CLASS_INDEX, keyOf(machineClass))) {
        machineQueue.add(keyOf(machine), isBeingDeleted(machine) ? 'high' : 'low');
      }
    }
  });
  classes.onChange((old, current) => {
    const before = new Set(old === undefined ? [] : secretIndex(old));
    const after = new Set(current === undefined ? [] : secretIndex(current));
    for (const key of new Set([...before, ...after])) {
      if (before.has(key) !== after.has(key)) queue.add(key, classes.hasSynced ? 'normal' : 'low');
    }
  });
}
