/** The group of Cluster API's own kinds; those of its providers are in groups of theirs. */
export const CLUSTER_API_GROUP = 'cluster.x-k8s.io';

/** On all objects of a Cluster: its name. */
export const CLUSTER_NAME_LABEL = 'cluster.x-k8s.io/cluster-name';

/** On objects that were made of a template: its name. */
export const CLONED_FROM_NAME_ANNOTATION = 'cluster.x-k8s.io/cloned-from-name';
/** The same: its kind and group, `DevMachineTemplate.infrastructure.cluster.x-k8s.io`. */
export const CLONED_FROM_KIND_ANNOTATION = 'cluster.x-k8s.io/cloned-from-groupkind';
