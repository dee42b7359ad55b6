import { keyOf } from '../../apis/meta.ts';
import type { Caches } from '../../operator/caches.ts';
import type { Queue } from '../../work/workqueue/queue.ts';
import { classIndex } from '../../operator/indexes/class-index.ts';

/** Enqueues a class when it changes, and when it gains or loses a Machine. */
export function wakeMachineClasses({ classes, machines }: Pick<Caches, 'classes' | 'machines'>, queue: Queue): void {
  classes.onChange((old, current) => {
    const machineClass = current ?? old;
    if (machineClass !== undefined) queue.add(keyOf(machineClass), classes.hasSynced ? 'normal' : 'low');
  });
  machines.onChange((old, current) => {
    const before = old === undefined ? [] : classIndex(old);
    const after = current === undefined ? [] : classIndex(current);
    const hasChanged = (key: string): boolean => before.includes(key) !== after.includes(key);
    for (const key of new Set([...before, ...after].filter(hasChanged)))
      queue.add(key, machines.hasSynced ? 'normal' : 'low');
  });
}
