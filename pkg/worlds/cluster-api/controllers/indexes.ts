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
