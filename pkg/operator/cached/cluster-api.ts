import type { KubeObject } from '../../apis/meta.ts';
import { CLUSTER_API_MACHINE_INDEXES } from '../../indexes/machine-indexes.ts';
import { clusterAPIClusters, clusterAPIMachines, customResourceDefinitions } from '../../kube/resource.ts';
import { type CachingProcess, cached } from './kind.ts';

const isClusterAPI = ({ controllers }: CachingProcess): boolean => controllers.has('cluster-api');

export const CLUSTER_API_KINDS = {
  clusterAPIMachines: cached(clusterAPIMachines, (process) =>
    isClusterAPI(process) ? { namespace: process.namespace, indexes: CLUSTER_API_MACHINE_INDEXES } : undefined,
  ),
  clusterAPIClusters: cached(clusterAPIClusters, (process) =>
    isClusterAPI(process) ? { namespace: process.namespace } : undefined,
  ),
  /** CustomResourceDefinitions of the control cluster, metadata only. */
  definitions: cached<KubeObject>(customResourceDefinitions, (process) =>
    isClusterAPI(process) ? { metadataOnly: true } : undefined,
  ),
};
