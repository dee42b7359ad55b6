import { isDeepStrictEqual } from 'node:util';

import { keyOf } from '../../../apis/meta.ts';
import type { Queue } from '../../../work/workqueue/queue.ts';
import type { IronCoreCollaborators } from './collaborators.ts';
import { kindKeys } from '../../../work/reconcile/kind-keys.ts';

const KEYS = kindKeys('pool', 'class', 'machine');

const lifecycleKeyOf = KEYS.queueKeyOf;

export const lifecycleObjectOf = KEYS.objectOf;

type Watched = Pick<IronCoreCollaborators, 'machines' | 'pools' | 'classes' | 'poolLeases'>;

/** Enqueues pools that show something, classes that change or lose a Machine, and Machines that a taint may drive out. */
export function wakeLifecycle({ machines, pools, classes, poolLeases }: Watched, queue: Queue): void {
  pools.onChange((old, current) => {
    const name = (current ?? old)?.metadata.name ?? '';
    queue.add(lifecycleKeyOf('pool', name));
    if (isDeepStrictEqual(old?.spec?.taints ?? [], current?.spec?.taints ?? [])) return;
    for (const machine of machines.byIndex('pool', name)) queue.add(lifecycleKeyOf('machine', keyOf(machine)));
  });
  poolLeases.onChange((old, current) => queue.add(lifecycleKeyOf('pool', (current ?? old)?.metadata.name ?? '')));
  classes.onChange((old, current) => queue.add(lifecycleKeyOf('class', (current ?? old)?.metadata.name ?? '')));
  machines.onChange((old, current) => {
    if (current === undefined) queue.add(lifecycleKeyOf('class', old?.spec.machineClassRef.name ?? ''));
    else if (!isDeepStrictEqual(current.spec, old?.spec)) queue.add(lifecycleKeyOf('machine', keyOf(current)));
  });
}
