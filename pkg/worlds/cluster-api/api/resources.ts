import type { ClusterAPICluster } from './cluster.ts';
import { CLUSTER_API_GROUP, CLUSTER_API_VERSION, OLDER_CLUSTER_API_VERSION } from './keys.ts';
import type { ClusterAPIMachine } from './machine.ts';
import {
  clusterFromV1beta1,
  clusterToV1beta1,
  machineFromV1beta1,
  machineToV1beta1,
  machineToV1beta2,
} from './v1beta1.ts';
import { resourcesOf, type ShippedFiles } from '../../../apis/resource.ts';

export const CLUSTER_API_FILE = 'deploy/rbac/cluster-api.yaml';

const SHIPPED: ShippedFiles = { definitions: 'crds/cluster-api', roles: CLUSTER_API_FILE };

const v1beta2 = resourcesOf(CLUSTER_API_GROUP, CLUSTER_API_VERSION, SHIPPED);
const v1beta1 = resourcesOf(CLUSTER_API_GROUP, OLDER_CLUSTER_API_VERSION, SHIPPED);

export const clusterAPIMachines = v1beta2<ClusterAPIMachine>('machines', 'Machine', {
  toWire: machineToV1beta2,
  older: v1beta1('machines', 'Machine', { normalise: machineFromV1beta1, toWire: machineToV1beta1 }),
});
export const clusterAPIClusters = v1beta2<ClusterAPICluster>('clusters', 'Cluster', {
  older: v1beta1('clusters', 'Cluster', { normalise: clusterFromV1beta1, toWire: clusterToV1beta1 }),
});
export const machineDrainRules = v1beta2('machinedrainrules', 'MachineDrainRule', {
  // Both versions say the same.
  older: v1beta1('machinedrainrules', 'MachineDrainRule'),
});
