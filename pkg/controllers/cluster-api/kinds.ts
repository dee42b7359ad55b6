import type { KubeObject } from '../../apis/meta.ts';
import { CLUSTER_API_MACHINE_INDEXES } from './indexes.ts';
import { customResourceDefinitions, secrets } from '../../kube/resource.ts';
import { CLUSTER_API_FILE, clusterAPIClusters, clusterAPIMachines } from '../../apis/cluster-api/resources.ts';
import { type ProcessRole, cached } from '../../operator/cached/kind.ts';

/** Whether Machines of Cluster API are looked after. */
export const isClusterAPI = ({ controllers }: Pick<ProcessRole, 'controllers'>): boolean =>
  controllers.has('cluster-api');

/** Where they are looked after. */
const places = ({ clusterAPIEverywhere = false, namespace }: ProcessRole): { readonly namespace?: string } =>
  clusterAPIEverywhere ? {} : { namespace };

export const CLUSTER_API_KINDS = {
  clusterAPIMachines: cached(clusterAPIMachines, (process) =>
    isClusterAPI(process) ? { ...places(process), indexes: CLUSTER_API_MACHINE_INDEXES } : undefined,
  ),
  clusterAPIClusters: cached(clusterAPIClusters, (process) => (isClusterAPI(process) ? places(process) : undefined)),
  /** Metadata only, of all namespaces; in one the Secrets of our own Machines are theirs too. */
  clusterAPISecrets: cached<KubeObject>(secrets, (process) =>
    isClusterAPI(process) && process.clusterAPIEverywhere === true ? { metadataOnly: true } : undefined,
  ),
  /** CustomResourceDefinitions of the control cluster, metadata only. */
  definitions: cached<KubeObject>({ ...customResourceDefinitions, shipped: { roles: CLUSTER_API_FILE } }, (process) =>
    isClusterAPI(process) ? { metadataOnly: true } : undefined,
  ),
};
