import * as clusterAPIKeys from '../../../pkg/worlds/cluster-api/api/keys.ts';
import * as clusterAPITags from '../../../pkg/worlds/cluster-api/driver/tags.ts';
import { clusterAPICluster, clusterAPIMachine, machineDrainRule } from '../crds/cluster-api.ts';
import type { GeneratedWorld } from './generated-world.ts';

export const CLUSTER_API_GENERATED: GeneratedWorld = {
  definitions: [clusterAPICluster, clusterAPIMachine, machineDrainRule],
  tags: {
    file: 'pkg/worlds/cluster-api/driver/tags.ts',
    module: clusterAPITags,
    on: 'objects that `cluster-api-driver` creates',
  },
  keys: {
    file: 'pkg/worlds/cluster-api/api/keys.ts',
    module: clusterAPIKeys,
    only: ['NODE_CLUSTER_ANNOTATION', 'HAD_KUBECONFIG_ANNOTATION', 'HAD_CONTROL_PLANE_ANNOTATION', 'DELETION_HOOK'],
  },
};
