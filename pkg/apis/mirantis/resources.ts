import type { CloudCluster } from './cluster.ts';
import { CLUSTER_GROUP, CLUSTER_VERSION, type ClusterMachine } from './machine.ts';
import { KAAS_GROUP, KAAS_VERSION, type MachinePool } from './pool.ts';
import { defineResource } from '../resource.ts';

export const clusterMachines = defineResource<ClusterMachine>(CLUSTER_GROUP, CLUSTER_VERSION, 'machines', 'Machine');
export const cloudClusters = defineResource<CloudCluster>(CLUSTER_GROUP, CLUSTER_VERSION, 'clusters', 'Cluster');
export const machinePools = defineResource<MachinePool>(KAAS_GROUP, KAAS_VERSION, 'machinepools', 'MachinePool');
