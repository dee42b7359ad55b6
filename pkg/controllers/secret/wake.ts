import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import { keyOf } from '../../apis/meta.ts';
import type { KubeObject } from '../../apis/meta.ts';
import type { Informer } from '../../cache/lister.ts';
import type { Queue } from '../../workqueue/queue.ts';
import { secretIndex } from '../../indexes/secret-references.ts';

/** What tells the Secret controller that there is work. */
export interface WakeParts {
  readonly secrets: Informer<KubeObject>;
  readonly classes: Informer<MachineClass>;
  readonly queue: Queue;
}

/** Enqueues a Secret when it changes and when a class begins or ceases to name it. */
export function wakeSecrets({ secrets, classes, queue }: WakeParts): void {
  secrets.onChange((old, current) => {
    const secret = current ?? old;
    if (secret !== undefined) queue.add(keyOf(secret), secrets.hasSynced ? 'normal' : 'low');
  });
  classes.onChange((old, current) => {
    const before = new Set(old === undefined ? [] : secretIndex(old));
    const after = new Set(current === undefined ? [] : secretIndex(current));
    for (const key of new Set([...before, ...after])) {
      if (before.has(key) !== after.has(key)) queue.add(key, classes.hasSynced ? 'normal' : 'low');
    }
  });
}
