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
import type { KubeObject } from '../../../apis/meta.ts';
import { defineResource, type Resource, type ShippedFiles } from '../../../apis/resource.ts';

export const CLUSTER_API_FILE = 'deploy/rbac/cluster-api.yaml';

const SHIPPED: ShippedFiles = { definitions: 'crds/cluster-api', roles: CLUSTER_API_FILE };

const define = <T extends KubeObject>(version: string, plural: string, kind: string): Resource<T> =>
  defineResource<T>(CLUSTER_API_GROUP, version, plural, kind, true, SHIPPED);

export const clusterAPIMachines: Resource<ClusterAPIMachine> = Object.freeze({
  ...define<ClusterAPIMachine>(CLUSTER_API_VERSION, 'machines', 'Machine'),
  toWire: machineToV1beta2,
  older: Object.freeze({
    ...define<ClusterAPIMachine>(OLDER_CLUSTER_API_VERSION, 'machines', 'Machine'),
    normalise: machineFromV1beta1,
    toWire: machineToV1beta1,
  }),
});
export const clusterAPIClusters: Resource<ClusterAPICluster> = Object.freeze({
  ...define<ClusterAPICluster>(CLUSTER_API_VERSION, 'clusters', 'Cluster'),
  older: Object.freeze({
    ...define<ClusterAPICluster>(OLDER_CLUSTER_API_VERSION, 'clusters', 'Cluster'),
    normalise: clusterFromV1beta1,
    toWire: clusterToV1beta1,
  }),
});
export const machineDrainRules: Resource<KubeObject> = Object.freeze({
  ...define(CLUSTER_API_VERSION, 'machinedrainrules', 'MachineDrainRule'),
  // Both versions say the same.
  older: defineResource<KubeObject>(
    CLUSTER_API_GROUP,
    OLDER_CLUSTER_API_VERSION,
    'machinedrainrules',
    'MachineDrainRule',
  ),
});
