import type { KubeObject } from '../../../apis/meta.ts';
import { CLUSTER_API_FLAGS } from './flags.ts';
import { customResourceDefinitions, secrets } from '../../../kube/client/resource.ts';
import { CLUSTER_API_FILE, clusterAPIClusters, clusterAPIMachines } from '../api/resources.ts';
import { type CachingProcess, cached } from '../../../operator/cached/kind.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import type { IndexFunctions } from '../../../kube/cache/store.ts';
import { present } from '../../../operator/indexes/present.ts';

/** Indexes of Machines of Cluster API: by provider id, by the names of their Node, their Cluster, and the Secret that they start with. */
export const CLUSTER_API_MACHINE_INDEXES = {
  providerID: ({ spec }) => present(spec?.providerID),
  node: ({ status }) => present(status?.nodeRef?.name),
  cluster: ({ spec }) => present(spec?.clusterName),
  dataSecret: ({ spec }) => present(spec?.bootstrap?.dataSecretName),
} satisfies IndexFunctions<ClusterAPIMachine>;

export const isClusterAPI = ({ controllers }: Pick<CachingProcess, 'controllers'>): boolean =>
  controllers.has('cluster-api');

export function placesOf(namespace: string, { of }: Pick<CachingProcess, 'of'>): { readonly namespace?: string } {
  return of(CLUSTER_API_FLAGS).isEverywhere ? {} : { namespace };
}

export const CLUSTER_API_KINDS = {
  clusterAPIMachines: cached(clusterAPIMachines, (process) =>
    isClusterAPI(process)
      ? { ...placesOf(process.namespace, process), indexes: CLUSTER_API_MACHINE_INDEXES }
      : undefined,
  ),
  clusterAPIClusters: cached(clusterAPIClusters, (process) =>
    isClusterAPI(process) ? placesOf(process.namespace, process) : undefined,
  ),
  /** Metadata only, of all namespaces; in one the Secrets of our own Machines are theirs too. */
  clusterAPISecrets: cached<KubeObject>(secrets, (process) =>
    isClusterAPI(process) && process.of(CLUSTER_API_FLAGS).isEverywhere ? { metadataOnly: true } : undefined,
  ),
  /** CustomResourceDefinitions of the control cluster, metadata only. */
  definitions: cached<KubeObject>({ ...customResourceDefinitions, shipped: { roles: CLUSTER_API_FILE } }, (process) =>
    isClusterAPI(process) ? { metadataOnly: true } : undefined,
  ),
};
