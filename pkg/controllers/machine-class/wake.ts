import { keyOf } from '../../apis/meta.ts';
import type { Caches } from '../../operator/caches.ts';
import type { Queue } from '../../workqueue/queue.ts';
import { classIndex } from '../../indexes/class-index.ts';

/** Enqueues a class when it changes, and when it gains or loses a Machine. */
export function wakeMachineClasses({ classes, machines }: Pick<Caches, 'classes' | 'machines'>, queue: Queue): void {
  classes.onChange((old, current) => {
    const machineClass = current ?? old;
    if (machineClass !== undefined) queue.add(keyOf(machineClass), classes.hasSynced ? 'normal' : 'low');
  });
  machines.onChange((old, current) => {
    const before = old === undefined ? undefined : classIndex(old)[0];
    const after = current === undefined ? undefined : classIndex(current)[0];
    if (before === after) return;
    for (const key of [before, after]) if (key !== undefined) queue.add(key, machines.hasSynced ? 'normal' : 'low');
  });
}
