import type { CloudCluster } from './cluster.ts';
import { CLUSTER_GROUP, CLUSTER_VERSION, type ClusterMachine } from './machine.ts';
import { KAAS_GROUP, KAAS_VERSION, type MachinePool } from './pool.ts';
import { resourcesOf, type ShippedFiles } from '../../../apis/resource.ts';

export const MIRANTIS_FILE = 'deploy/rbac/mirantis.yaml';

const SHIPPED: ShippedFiles = { definitions: 'crds/mirantis', roles: MIRANTIS_FILE };

const cluster = resourcesOf(CLUSTER_GROUP, CLUSTER_VERSION, SHIPPED);

export const clusterMachines = cluster<ClusterMachine>('machines', 'Machine');
export const cloudClusters = cluster<CloudCluster>('clusters', 'Cluster');
export const machinePools = resourcesOf(KAAS_GROUP, KAAS_VERSION, SHIPPED)<MachinePool>('machinepools', 'MachinePool');
