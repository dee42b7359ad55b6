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
import type { KubeObject } from '../meta.ts';
import { defineResource, type Resource } from '../resource.ts';

export const clusterAPIMachines: Resource<ClusterAPIMachine> = Object.freeze({
  ...defineResource<ClusterAPIMachine>(CLUSTER_API_GROUP, CLUSTER_API_VERSION, 'machines', 'Machine'),
  toWire: machineToV1beta2,
  older: Object.freeze({
    ...defineResource<ClusterAPIMachine>(CLUSTER_API_GROUP, OLDER_CLUSTER_API_VERSION, 'machines', 'Machine'),
    normalise: machineFromV1beta1,
    toWire: machineToV1beta1,
  }),
});
export const clusterAPIClusters: Resource<ClusterAPICluster> = Object.freeze({
  ...defineResource<ClusterAPICluster>(CLUSTER_API_GROUP, CLUSTER_API_VERSION, 'clusters', 'Cluster'),
  older: Object.freeze({
    ...defineResource<ClusterAPICluster>(CLUSTER_API_GROUP, OLDER_CLUSTER_API_VERSION, 'clusters', 'Cluster'),
    normalise: clusterFromV1beta1,
    toWire: clusterToV1beta1,
  }),
});
export const machineDrainRules: Resource<KubeObject> = Object.freeze({
  ...defineResource<KubeObject>(CLUSTER_API_GROUP, CLUSTER_API_VERSION, 'machinedrainrules', 'MachineDrainRule'),
  // Both versions say the same.
  older: defineResource<KubeObject>(
    CLUSTER_API_GROUP,
    OLDER_CLUSTER_API_VERSION,
    'machinedrainrules',
    'MachineDrainRule',
  ),
});
