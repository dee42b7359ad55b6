import { isDeepStrictEqual } from 'node:util';

import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { controllerOf, isBeingDeleted, keyBeside, keyOf, type KubeObject } from '../../apis/meta.ts';
import { POOL_LABEL, type ClusterMachine } from '../../apis/mirantis/machine.ts';
import { KAAS_GROUP, type MachinePool } from '../../apis/mirantis/pool.ts';
import type { Informer } from '../../cache/lister.ts';
import type { Priority, Queue } from '../../workqueue/queue.ts';
import { priorityFor } from '../replicas/wake.ts';
import { queueKeyOf } from './keys.ts';
import { readProviderValue } from './provider-value.ts';
import { areOne, clusterNameOf, isOfPool } from './wanted.ts';

interface Watched {
  readonly clusterMachines: Informer<ClusterMachine>;
  readonly machinePools: Informer<MachinePool>;
  readonly machines: Informer<Machine>;
  readonly machineDeployments: Informer<MachineDeployment>;
}

/** Enqueues a Machine when it changes, when ours does, and when others of its Cluster change the order of upgrades that it shows. */
export function wakeClusterMachines({ clusterMachines, machines }: Watched, queue: Queue): void {
  const wake = (machine: ClusterMachine, priority: Priority): void =>
    queue.add(queueKeyOf('Machine', machine), priority);
  clusterMachines.onChange((old, current) => {
    const machine = current ?? old;
    if (machine === undefined) return;
    wake(machine, priorityFor(clusterMachines, isBeingDeleted(machine)));
    if (!clusterMachines.hasSynced || orderOf(old) === orderOf(current)) return;
    const clusters = new Set([old, current].flatMap((one) => (one === undefined ? [] : [placeOf(one)])));
    for (const one of clusterMachines.list()) if (clusters.has(placeOf(one))) wake(one, 'low');
  });
  machines.onChange((old, current) => {
    const machine = current ?? old;
    if (machine === undefined) return;
    const made = clusterMachines.get(keyOf(machine));
    if (made === undefined || !areOne(made, machine)) return;
    wake(made, priorityFor(machines, isBeingDeleted(made)));
  });
}

/**
 * Enqueues a pool when it changes, when its MachineDeployment does, when a Machine of it comes or goes, and when somebody else has
 * written to one that shows such a Machine.
 */
export function wakePools(watched: Watched, queue: Queue): void {
  const { clusterMachines, machinePools, machines, machineDeployments } = watched;
  const wake = (pool: MachinePool, priority: Priority): void => queue.add(queueKeyOf('MachinePool', pool), priority);
  const wakeOf = (member: KubeObject | undefined, priority: Priority): void => {
    const name = member?.metadata.labels?.[POOL_LABEL];
    const pool = member && name !== undefined ? machinePools.get(keyBeside(member, name)) : undefined;
    if (pool !== undefined) wake(pool, priority);
  };
  machinePools.onChange((old, current) => {
    const pool = current ?? old;
    if (pool !== undefined) wake(pool, priorityFor(machinePools, isBeingDeleted(pool)));
  });
  machineDeployments.onChange((old, current) => {
    for (const deployment of [old, current]) {
      const owner = deployment && controllerOf(deployment);
      if (owner?.kind !== 'MachinePool' || !owner.apiVersion.startsWith(`${KAAS_GROUP}/`)) continue;
      const pool = machinePools.get(keyBeside(deployment ?? { metadata: {} }, owner.name));
      if (pool !== undefined) wake(pool, priorityFor(machineDeployments, isBeingDeleted(pool)));
    }
  });
  machines.onChange((old, current) => {
    if (old === undefined || current === undefined) wakeOf(current ?? old, 'normal');
  });
  clusterMachines.onChange((old, current) => {
    const member = current ?? old;
    if (member === undefined || !isOfPool(member)) return;
    if (!isDeepStrictEqual([old?.spec, old?.metadata.labels], [current?.spec, current?.metadata.labels])) {
      wakeOf(member, 'normal');
    }
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
