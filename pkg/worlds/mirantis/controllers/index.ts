import { eventsAbout } from '../../../kube/events/event-sink.ts';
import {
  cloudClusters as clusterResource,
  clusterMachines as clusterMachineResource,
  machinePools as poolResource,
} from '../api/resources.ts';
import { MANAGER_LEASE } from '../../../kube/leader/names.ts';
import type { Operator } from '../../../operator/operator.ts';
import { MIRANTIS_KINDS } from './kinds.ts';
import type { Controller } from '../../../work/reconcile/controller.ts';
import type { Reconcile } from '../../../work/reconcile/worker.ts';
import { ClusterController } from './cluster-controller.ts';
import { MirantisClusters } from './clusters.ts';
import { ClusterMachineController } from './machine-controller.ts';
import { mirantisObjectOf, type FrontEndKindName } from './keys.ts';
import { GeneratedClasses } from './generated-classes.ts';
import { MirantisPoolController } from './pool-controller.ts';
import { wakeClusterMachines, wakeClusters, wakePools, wakeSettings } from './wake.ts';

const EVENT_SOURCE = 'mirantis';

/** The front end for Machines, MachinePools and Clusters of Mirantis Container Cloud. */
export function mirantis(operator: Operator): Controller {
  const { caches, reader, log } = operator;
  const { machines, machineSets, machineDeployments, classes, labelPolicies, secrets } = caches;
  const { clusterMachines, machinePools, cloudClusters, configMaps } = caches.of(MIRANTIS_KINDS);
  const watched = { clusterMachines, machinePools, cloudClusters, machines, machineDeployments, labelPolicies };
  const { writer, targets } = operator.under(MANAGER_LEASE);
  const [target] = targets.all();
  const madeClasses = new GeneratedClasses({ classes, machines, machineSets, machineDeployments, reader, writer, log });
  const clusters = new MirantisClusters({ cloudClusters, clusterMachines, machineDeployments, machines });
  const shared = { clusterMachines, machines, clusters, madeClasses, reader, writer, targets, log };
  const recorder = operator.recorder(EVENT_SOURCE);
  const machine = new ClusterMachineController({
    ...shared,
    classes,
    nodes: target?.nodes,
    recorder: eventsAbout(clusterMachineResource, recorder),
  });
  const pool = new MirantisPoolController({
    ...shared,
    recorder: eventsAbout(poolResource, recorder),
    machinePools,
    machineSets,
    machineDeployments,
  });
  const cluster = new ClusterController({
    cloudClusters,
    labelPolicies,
    clusters,
    writer,
    recorder: eventsAbout(clusterResource, recorder),
  });
  const reconcile: Readonly<Record<FrontEndKindName, Reconcile>> = {
    Machine: (key, signal) => machine.reconcile(key, signal),
    Cluster: (key, signal) => cluster.reconcile(key, signal),
    MachinePool: (key, signal) => pool.reconcile(key, signal),
  };
  return {
    name: 'mirantis',
    queue: 'mirantis',
    lease: MANAGER_LEASE,
    // One: a pass removes classes that nothing uses, and must not meet another between a class and its first user.
    concurrency: 1,
    reconcile: (queueKey, signal, passLog) => {
      const { kind, key } = mirantisObjectOf(queueKey);
      return reconcile[kind](key, signal, passLog);
    },
    watches: [
      (queue) => wakeClusterMachines(watched, queue),
      (queue) => wakePools(watched, queue),
      (queue) => wakeClusters(watched, queue),
      (queue) => wakeSettings({ ...watched, configMaps, secrets }, queue),
    ],
  };
}
