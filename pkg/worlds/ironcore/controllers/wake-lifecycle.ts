import { isDeepStrictEqual } from 'node:util';

import type { IronCoreMachine } from '../api/machine.ts';
import type { IronCoreMachineClass } from '../api/machine-class.ts';
import type { IronCoreMachinePool } from '../api/machine-pool.ts';
import { keyOf } from '../../../apis/meta.ts';
import type { Lease } from '../../../apis/wire.ts';
import type { Informer } from '../../../kube/cache/lister.ts';
import type { Queue } from '../../../work/workqueue/queue.ts';
import { lifecycleKeyOf } from './lifecycle-keys.ts';

interface Watched {
  /** Indexes: `pool`. */
  readonly machines: Informer<IronCoreMachine>;
  readonly pools: Informer<IronCoreMachinePool>;
  readonly classes: Informer<IronCoreMachineClass>;
  readonly poolLeases: Informer<Lease>;
}

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
