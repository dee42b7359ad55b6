import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { controllerOf, isBeingDeleted, keyOf } from '../../apis/meta.ts';
import type { ClusterMachine } from '../../apis/mirantis/machine.ts';
import type { Informer } from '../../cache/lister.ts';
import type { Queue } from '../../workqueue/queue.ts';
import { priorityFor } from '../replicas/wake.ts';
import { readProviderValue } from './provider-value.ts';
import { clusterNameOf } from './wanted.ts';

interface Watched {
  readonly clusterMachines: Informer<ClusterMachine>;
  readonly machines: Informer<Machine>;
}

/** Enqueues a Machine when it changes, when ours does, and when others of its Cluster change the order of upgrades that it shows. */
export function wakeClusterMachines({ clusterMachines, machines }: Watched, queue: Queue): void {
  clusterMachines.onChange((old, current) => {
    const machine = current ?? old;
    if (machine === undefined) return;
    queue.add(keyOf(machine), priorityFor(clusterMachines, isBeingDeleted(machine)));
    if (!clusterMachines.hasSynced || orderOf(old) === orderOf(current)) return;
    const clusters = new Set([old, current].flatMap((one) => (one === undefined ? [] : [placeOf(one)])));
    for (const one of clusterMachines.list()) if (clusters.has(placeOf(one))) queue.add(keyOf(one), 'low');
  });
  machines.onChange((old, current) => {
    const machine = current ?? old;
    if (machine === undefined) return;
    const made = clusterMachines.get(keyOf(machine));
    if (made === undefined || controllerOf(machine)?.uid !== made.metadata.uid) return;
    queue.add(keyOf(made), priorityFor(machines, isBeingDeleted(made)));
  });
}

/** What the order of upgrades follows from. */
function orderOf(machine: ClusterMachine | undefined): string | undefined {
  if (machine === undefined) return undefined;
  return `${placeOf(machine)} ${readProviderValue(machine).value?.upgradeIndex ?? ''}`;
}

function placeOf(machine: ClusterMachine): string {
  return `${machine.metadata.namespace ?? ''}/${clusterNameOf(machine)}`;
}
