import type { CloudCluster } from './cluster.ts';
import { CLUSTER_GROUP, CLUSTER_VERSION, type ClusterMachine } from './machine.ts';
import { KAAS_GROUP, KAAS_VERSION, type MachinePool } from './pool.ts';
import { defineResource, type ShippedFiles } from '../../../apis/resource.ts';

export const MIRANTIS_FILE = 'deploy/rbac/mirantis.yaml';

const SHIPPED: ShippedFiles = { definitions: 'crds/mirantis', roles: MIRANTIS_FILE };

export const clusterMachines = defineResource<ClusterMachine>(
  CLUSTER_GROUP,
  CLUSTER_VERSION,
  'machines',
  'Machine',
  true,
  SHIPPED,
);
export const cloudClusters = defineResource<CloudCluster>(
  CLUSTER_GROUP,
  CLUSTER_VERSION,
  'clusters',
  'Cluster',
  true,
  SHIPPED,
);
export const machinePools = defineResource<MachinePool>(
  KAAS_GROUP,
  KAAS_VERSION,
  'machinepools',
  'MachinePool',
  true,
  SHIPPED,
);
