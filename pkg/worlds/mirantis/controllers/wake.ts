import { isDeepStrictEqual } from 'node:util';

import { controllerOf, isBeingDeleted, keyBeside, keyOf, type KubeObject } from '../../../apis/meta.ts';
import type { CloudCluster } from '../api/cluster.ts';
import { MIRANTIS_CLUSTER_NAME_LABEL, MIRANTIS_POOL_LABEL, type ClusterMachine } from '../api/machine.ts';
import { KAAS_GROUP, type MachinePool } from '../api/pool.ts';
import type { Priority, Queue } from '../../../work/workqueue/queue.ts';
import { isUnderMaintenance } from '../../../controllers/machine-facts/maintenance.ts';
import { priorityFor } from '../../../controllers/replicas/wake.ts';
import { mirantisQueueKeyOf } from './keys.ts';
import { readProviderValue } from './provider-value.ts';
import { areOne, clusterNameOf, isOfPool } from './desired-machine.ts';
import type { MirantisCollaborators } from './collaborators.ts';

type Watched = Pick<MirantisCollaborators, 'clusterMachines' | 'machinePools' | 'machines' | 'machineDeployments'>;

/** Enqueues a Machine when it changes, when ours does, and when others of its Cluster change the order of upgrades that it shows. */
export function wakeClusterMachines({ clusterMachines, machines }: Watched, queue: Queue): void {
  const wake = (machine: ClusterMachine, priority: Priority): void =>
    queue.add(mirantisQueueKeyOf('Machine', machine), priority);
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
  const wake = (pool: MachinePool, priority: Priority): void =>
    queue.add(mirantisQueueKeyOf('MachinePool', pool), priority);
  const wakeOf = (member: KubeObject | undefined, priority: Priority): void => {
    const name = member?.metadata.labels?.[MIRANTIS_POOL_LABEL];
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

type WatchedClusters = Watched & Pick<MirantisCollaborators, 'cloudClusters' | 'labelPolicies'>;

/**
 * Enqueues a Cluster, with its Machines and pools, when it changes; and the Cluster and its pools when one of its Machines begins or ends
 * maintenance, the Cluster alone when its rollouts begin to be held or its NodeLabelPolicy changes.
 */
export function wakeClusters(watched: WatchedClusters, queue: Queue): void {
  const { cloudClusters, clusterMachines, machinePools, machines, machineDeployments, labelPolicies } = watched;
  const wakePoolsOf = (place: string): void => {
    for (const one of machinePools.list())
      if (placeOf(one) === place) queue.add(mirantisQueueKeyOf('MachinePool', one), 'low');
  };
  const wake = (holder: KubeObject, name: string | undefined): CloudCluster | undefined => {
    const cluster = name === undefined ? undefined : cloudClusters.get(keyBeside(holder, name));
    if (cluster !== undefined) queue.add(mirantisQueueKeyOf('Cluster', cluster));
    return cluster;
  };
  cloudClusters.onChange((old, current) => {
    const cluster = current ?? old;
    if (cluster === undefined) return;
    queue.add(mirantisQueueKeyOf('Cluster', cluster), priorityFor(cloudClusters, isBeingDeleted(cluster)));
    const place = keyOf(cluster);
    wakePoolsOf(place);
    for (const one of clusterMachines.list())
      if (placeOf(one) === place) queue.add(mirantisQueueKeyOf('Machine', one), 'low');
  });
  machines.onChange((old, current) => {
    const machine = current ?? old;
    if (machine === undefined) return;
    const [before, after] = [old, current].map((one) => one !== undefined && isUnderMaintenance(one));
    if (before === after) return;
    if (wake(machine, clusterNameOf(machine)) !== undefined) wakePoolsOf(placeOf(machine));
  });
  machineDeployments.onChange((old, current) => {
    const deployment = current ?? old;
    if (deployment === undefined || (old !== undefined && old.spec.paused === current?.spec.paused)) return;
    wake(deployment, deployment.spec.template?.metadata?.labels?.[MIRANTIS_CLUSTER_NAME_LABEL]);
  });
  labelPolicies.onChange((old, current) => {
    const owner = current ?? old;
    const reference = owner && controllerOf(owner);
    if (owner !== undefined && reference?.kind === 'Cluster') wake(owner, reference.name);
  });
}

type WatchedSettings = Pick<MirantisCollaborators, 'clusterMachines' | 'machinePools' | 'configMaps' | 'secrets'>;

/** Enqueues the Machines and pools of a Cluster when the ConfigMap or the Secret of its settings changes, comes or goes. */
export function wakeSettings(watched: WatchedSettings, queue: Queue): void {
  const { configMaps, secrets, clusterMachines, machinePools } = watched;
  for (const settings of [configMaps, secrets]) {
    settings.onChange((old, current) => {
      const changed = current ?? old;
      // All have a pass when the process begins.
      if (changed === undefined || !settings.hasSynced) return;
      const place = keyOf(changed);
      for (const one of machinePools.list())
        if (placeOf(one) === place) queue.add(mirantisQueueKeyOf('MachinePool', one));
      for (const one of clusterMachines.list())
        if (placeOf(one) === place) queue.add(mirantisQueueKeyOf('Machine', one));
    });
  }
}

function orderOf(machine: ClusterMachine | undefined): string | undefined {
  if (machine === undefined) return undefined;
  return `${placeOf(machine)} ${readProviderValue(machine).value?.upgradeIndex ?? ''}`;
}

function placeOf(holder: KubeObject): string {
  return keyBeside(holder, clusterNameOf(holder));
}
