/** The group of Cluster API's own kinds; those of its providers are in groups of theirs. */
export const CLUSTER_API_GROUP = 'cluster.x-k8s.io';
/** The version in whose shape everything is decided; it is read and written where it is served. */
export const CLUSTER_API_VERSION = 'v1beta2';
/** The version that is read and written where only this one is. */
export const OLDER_CLUSTER_API_VERSION = 'v1beta1';
export const CLUSTER_API_VERSIONED = `${CLUSTER_API_GROUP}/${CLUSTER_API_VERSION}`;
/** The definition of rules for drains; they are obeyed where it is. */
export const DRAIN_RULES_DEFINITION = `machinedrainrules.${CLUSTER_API_GROUP}`;
/** Where the kinds of infrastructure providers usually are. */
export const INFRASTRUCTURE_GROUP = 'infrastructure.cluster.x-k8s.io';
/** Where the kinds of bootstrap providers usually are. */
export const BOOTSTRAP_GROUP = 'bootstrap.cluster.x-k8s.io';
/** Where the kinds of control planes usually are. */
export const CONTROL_PLANE_GROUP = 'controlplane.cluster.x-k8s.io';

/** On all objects of a Cluster: its name. */
export const CLUSTER_NAME_LABEL = 'cluster.x-k8s.io/cluster-name';
/** On Machines: those of the control plane have it, with any value. */
export const CONTROL_PLANE_LABEL = 'cluster.x-k8s.io/control-plane';
/** On Machines: that they are made by somebody who owns them. */
export const OWNED_MACHINE_LABELS = [
  'cluster.x-k8s.io/set-name',
  'cluster.x-k8s.io/pool-name',
  'cluster.x-k8s.io/control-plane-name',
] as const;
/** On Machines and Clusters: who looks after them, where several managers do. */
export const WATCH_FILTER_LABEL = 'cluster.x-k8s.io/watch-filter';
/** On Nodes: the provider may take the machine back. */
export const INTERRUPTIBLE_LABEL = 'cluster.x-k8s.io/interruptible';

/** On any object: it is left alone. */
export const PAUSED_ANNOTATION = 'cluster.x-k8s.io/paused';
/** On objects that were made of a template: its name. */
export const CLONED_FROM_NAME_ANNOTATION = 'cluster.x-k8s.io/cloned-from-name';
/** The same: its kind and group, `DevMachineTemplate.infrastructure.cluster.x-k8s.io`. */
export const CLONED_FROM_KIND_ANNOTATION = 'cluster.x-k8s.io/cloned-from-groupkind';
/** On Machines that are being deleted: each annotation with this prefix holds the drain. */
export const CLUSTER_API_PRE_DRAIN_HOOK_PREFIX = 'pre-drain.delete.hook.machine.cluster.x-k8s.io';
/** The same: it holds the deletion of the infrastructure. */
export const CLUSTER_API_PRE_TERMINATE_HOOK_PREFIX = 'pre-terminate.delete.hook.machine.cluster.x-k8s.io';
/**
 * On Machines of driver `cluster-api`: delays the deletion of their infrastructure until DeleteMachine is called. No other controller drains their Nodes, so a Machine that is deleted manually must not be removed before its Machine of Machinist. Every controller of these Machines respects it, including the core of Cluster API.
 */
export const DELETION_HOOK = `${CLUSTER_API_PRE_TERMINATE_HOOK_PREFIX}/machinist`;
/** On Machines: their Nodes are not drained. */
export const EXCLUDE_DRAIN_ANNOTATION = 'machine.cluster.x-k8s.io/exclude-node-draining';
/** On Pods: `skip` leaves them alone when their Node is drained, `wait-completed` waits until they have completed. */
export const POD_DRAIN_LABEL = 'cluster.x-k8s.io/drain';
/** On Machines: nobody waits until the volumes of their Nodes are detached. */
export const EXCLUDE_DETACH_ANNOTATION = 'machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach';

/** On Machines of control planes, or on their bootstrap objects: when their certificates expire. */
export const CERTIFICATES_EXPIRY_ANNOTATION = 'machine.cluster.x-k8s.io/certificates-expiry';

/** On Nodes: whose they are. */
export const NODE_CLUSTER_NAME_ANNOTATION = 'cluster.x-k8s.io/cluster-name';
export const NODE_CLUSTER_NAMESPACE_ANNOTATION = 'cluster.x-k8s.io/cluster-namespace';
export const NODE_MACHINE_ANNOTATION = 'cluster.x-k8s.io/machine';
export const NODE_OWNER_KIND_ANNOTATION = 'cluster.x-k8s.io/owner-kind';
export const NODE_OWNER_NAME_ANNOTATION = 'cluster.x-k8s.io/owner-name';
/** On Nodes: what was taken over from the Machine, a list with commas. */
export const LABELS_FROM_MACHINE_ANNOTATION = 'cluster.x-k8s.io/labels-from-machine';
export const ANNOTATIONS_FROM_MACHINE_ANNOTATION = 'cluster.x-k8s.io/annotations-from-machine';
export const TAINTS_FROM_MACHINE_ANNOTATION = 'cluster.x-k8s.io/taints-from-machine';
/** On Nodes that have just joined: nothing is scheduled before their labels are there. */
export const UNINITIALIZED_TAINT = 'node.cluster.x-k8s.io/uninitialized';

/** On Nodes whose Machines are of an older revision than their MachineDeployment: others are preferred for Pods. */
export const OUTDATED_TAINT = { key: 'node.cluster.x-k8s.io/outdated-revision', effect: 'PreferNoSchedule' } as const;
/** On MachineSets and MachineDeployments: a number that grows with each change of the template. */
export const CLUSTER_API_REVISION_ANNOTATION = 'machinedeployment.clusters.x-k8s.io/revision';

/** Holds Machines until all that belongs to them is gone. */
export const CLUSTER_API_MACHINE_FINALIZER = 'machine.cluster.x-k8s.io';
/** Holds Clusters until their Machines and their infrastructure are gone. */
export const CLUSTER_FINALIZER = 'cluster.cluster.x-k8s.io';

/** The Secret with the kubeconfig of a Cluster, under key `value`, is called as the Cluster and this. */
export const KUBECONFIG_SECRET_SUFFIX = '-kubeconfig';
/** On Machines of Cluster API: UID of the Namespace kube-system in the cluster in which their Node was found. */
export const NODE_CLUSTER_ANNOTATION = 'cluster-api.machine.sapcloud.io/node-cluster';
/** On Clusters of Cluster API: they have, or had, a Secret with their kubeconfig; without it their Machines wait. */
export const HAD_KUBECONFIG_ANNOTATION = 'cluster-api.machine.sapcloud.io/had-kubeconfig';
/** On Clusters of Cluster API: they have, or had, a Machine of their control plane with a Node; without any, their API server is gone. */
export const HAD_CONTROL_PLANE_ANNOTATION = 'cluster-api.machine.sapcloud.io/had-control-plane';
