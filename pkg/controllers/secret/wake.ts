import { keyOf } from '../../apis/meta.ts';
import type { Caches } from '../../operator/caches.ts';
import type { Queue } from '../../work/workqueue/queue.ts';
import { secretIndex } from '../../operator/indexes/secret-references.ts';

/** Enqueues a Secret when it changes and when a class begins or ceases to name it. */
export function wakeSecrets({ secrets, classes }: Pick<Caches, 'secrets' | 'classes'>, queue: Queue): void {
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
