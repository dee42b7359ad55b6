/*
 * All keys of Machinist and of the original. `npm run generate` writes them to docs/reference/annotations.md: a doc comment has the objects of
 * a key, then its meaning; the heading has its origin, and whether users set it.
 */

// The original's labels

/** On Machines: name of the Node. */
export const NODE_LABEL = 'node';
/** On Machines: name of the MachineDeployment; read for metrics only, never written by Machinist. */
export const DEPLOYMENT_NAME_LABEL = 'name';
/** On Machines: deletes the Machine without waiting for the drain; parsed as a Go bool. */
export const FORCE_DELETION_LABEL = 'force-deletion';
/** On Machines: `True` (exactly) forces drains before in-place updates, preservation and maintenance. */
export const FORCE_DRAIN_LABEL = 'force-drain';
/** On MachineDeployments and MachineSets: `True` while they have, or create, too many Machines. */
export const FREEZE_LABEL = 'freeze';
/** On MachineSets, their selector and their Machines: hash of the template. */
export const TEMPLATE_HASH_LABEL = 'machine-template-hash';
/** On Nodes: name of the Machine. */
export const MACHINE_NAME_LABEL = 'node.gardener.cloud/machine-name';
/** On old MachineSets of an in-place update: they create no Machines. */
export const SCALE_UP_DISABLED_LABEL = 'node.machine.sapcloud.io/scale-up-disabled';
/** On Nodes: they are to be updated in place to a new template; set by the MachineDeployment controller. */
export const CANDIDATE_FOR_UPDATE_LABEL = 'node.machine.sapcloud.io/candidate-for-update';
/** On Nodes: they are drained for an in-place update; set by the MachineDeployment controller or, in manual updates, by a user. */
export const SELECTED_FOR_UPDATE_LABEL = 'node.machine.sapcloud.io/selected-for-update';
/** On Nodes and Machines: result of an in-place update, `successful` or `failed`. */
export const UPDATE_RESULT_LABEL = 'node.machine.sapcloud.io/update-result';

// The original's annotations that users and tools set

/** On Machines: Machines with smaller values are deleted first; the default is 3. */
export const PRIORITY_ANNOTATION = 'machinepriority.machine.sapcloud.io';
/** On Machines: when the autoscaler selected them for deletion, RFC 3339. */
export const MARKED_FOR_DELETION_TIME_ANNOTATION = 'machine.sapcloud.io/marked-for-deletion-time';
/** On MachineDeployments and MachineSets: when the autoscaler last changed replicas, RFC 3339. */
export const LAST_SCALER_CHANGE_ANNOTATION = 'machine.sapcloud.io/last-deployment-replica-change-by-scaler-time';
/** On MachineDeployments: Machines that the autoscaler has selected for deletion. */
export const TRIGGER_DELETION_ANNOTATION = 'node.machine.sapcloud.io/trigger-deletion-by-mcm';
/** On all kinds down to the Machine: creation timeout that overrides the spec, a Go duration. */
export const EFFECTIVE_CREATION_TIMEOUT_ANNOTATION = 'node.machine.sapcloud.io/effective-creation-timeout';
/** On Machines and Nodes: preservation request. */
export const PRESERVE_ANNOTATION = 'node.machine.sapcloud.io/preserve';
/** On Nodes: why an in-place update failed; written by the agent on the Node. */
export const UPDATE_FAILED_REASON_ANNOTATION = 'node.machine.sapcloud.io/update-failed-reason';
/** On Nodes: `true` prevents the cluster-autoscaler from removing them. */
export const SCALE_DOWN_DISABLED_ANNOTATION = 'cluster-autoscaler.kubernetes.io/scale-down-disabled';
/** On Nodes: they have no Machine. */
export const NOT_MANAGED_ANNOTATION = 'node.machine.sapcloud.io/not-managed-by-mcm';
/** On MachineSets: their Nodes have the taint with the same key. */
export const PREFER_NO_SCHEDULE_KEY = 'deployment.machine.sapcloud.io/prefer-no-schedule';
/** On MachineDeployments and MachineSets: ends a freeze immediately. */
export const UNFREEZE_ANNOTATION = 'safety.machine.sapcloud.io/unfreeze';

// The original's annotations that controllers record

/** On Machines: preservation value last taken from the Node. */
export const LAST_APPLIED_NODE_PRESERVE_ANNOTATION = 'node.machine.sapcloud.io/last-applied-node-preserve-value';
/** On Nodes: annotation `cluster-autoscaler.kubernetes.io/scale-down-disabled` was set by Machinist, which removes it. */
export const SCALE_DOWN_DISABLED_BY_US_ANNOTATION = 'cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm';
/** On Nodes: the node template that was last applied, JSON. */
export const LAST_APPLIED_TEMPLATE_ANNOTATION = 'node.machine.sapcloud.io/last-applied-anno-labels-taints';
/** On Nodes: the virtual capacity that was last applied, JSON. */
export const LAST_APPLIED_CAPACITY_ANNOTATION = 'node.machine.sapcloud.io/last-applied-virtual-capacity';
/** On MachineSets and MachineDeployments: revision of the template. */
export const REVISION_ANNOTATION = 'deployment.kubernetes.io/revision';
/** On MachineSets: revisions held before, comma separated. */
export const REVISION_HISTORY_ANNOTATION = 'deployment.kubernetes.io/revision-history';
/** On MachineSets: replicas of the MachineDeployment when the set was last scaled. */
export const DESIRED_REPLICAS_ANNOTATION = 'deployment.kubernetes.io/desired-replicas';
/** On MachineSets: replicas plus surge of the MachineDeployment when the set was last scaled. */
export const MAX_REPLICAS_ANNOTATION = 'deployment.kubernetes.io/max-replicas';

// The original's finalizers

/** On MachineDeployments, MachineSets, Machines and MachineClasses: kept until the resources that belong to them are deleted. */
export const MACHINE_FINALIZER = 'machine.sapcloud.io/machine-controller-manager';
/** On Secrets that a MachineClass names: kept until no MachineClass does. */
export const SECRET_FINALIZER = 'machine.sapcloud.io/machine-controller';
/** On Nodes: deleting the Node drains it and deletes its Machine first. Used by the original since v0.61. */
export const NODE_FINALIZER = 'node.machine.sapcloud.io/machine-controller';

// The original's taints

/** On Nodes: its critical components are not ready yet; a Pending machine waits for its removal. */
export const CRITICAL_COMPONENTS_TAINT = 'node.gardener.cloud/critical-components-not-ready';
/** On Nodes: their machine has failed and is preserved; no new pods. Not used by the original up to v0.62. */
export const PRESERVED_TAINT = 'node.machine.sapcloud.io/preserved';

// Our labels

/**
 * On MachineClasses and MachineDeployments: the object of another API for which they were created. Unused classes with this label are
 * deleted.
 */
export const MADE_FOR_LABEL = 'machine.sapcloud.io/made-for';

/** On Leases of replicas with `--cells`: by it they find each other; its value is that of `--cell-shards`. */
export const CELL_REPLICA_LABEL = 'machine.sapcloud.io/cell-replica';
/** On Leases of replicas with `--cells`: the replicas of one version of a Deployment have the same, so that an upgrade is recognized. */
export const CELL_REVISION_LABEL = 'machine.sapcloud.io/cell-revision';
/** On Leases of replicas with `--cells`: a hash of the URL, the proxy and the server name of the one target cluster of all cells, or `own` where there is none. */
export const CELL_TARGET_SERVER_LABEL = 'machine.sapcloud.io/cell-target-server';
/** On Leases: by them, namespaces with `--cells` hold their target clusters; the value is the namespace, or empty if the cluster is that of all of them. */
export const CELL_TARGET_LABEL = 'machine.sapcloud.io/cell-target';
/** On Leases: by them, namespaces with `--cells` hold the workload clusters of their Clusters of Cluster API; the value is the namespace. */
export const CELL_WORKLOAD_LABEL = 'machine.sapcloud.io/cell-workload';

// Our annotations that users and tools set

/** On namespaces with `--cells`: followed by `/<flag>`, takes the place of a flag under Machines or Safety, or of `autoscaler-client-name`, `autoscaler-gpu-label` and `autoscaler-gpu-types`, for this namespace; a `machine-safety-orphan-vms-dry-run` of the process applies anyway. */
export const CELL_SETTING_PREFIX = 'cell.machine.sapcloud.io';

/** On namespaces with `--cells` and one target cluster, or none: UID of Namespace `kube-system` of the cluster to which its Machines are to move, or `none`; those whose Nodes are elsewhere are replaced. */
export const CELL_MOVES_TO_ANNOTATION = 'machine.sapcloud.io/cell-moves-to';
/**
 * On Machines and MachineClasses: any value, such as a time. Each new value retries failed calls to the provider immediately: those of the
 * Machine, or those of all Machines of the class.
 */
export const RETRY_ANNOTATION = 'machine.sapcloud.io/retry';
/** On MachinePools of IronCore: UIDs of MachinePools that were this one before, separated by commas; their machines are its own. */
export const FORMER_POOL_UIDS_ANNOTATION = 'machine.sapcloud.io/former-pool-uids';
/**
 * On MachinePools of IronCore: claims on machines at the runtime, separated by commas, as the pool's condition Ready lists them under reason
 * ClaimedByAnother. Machines with these claims, or older ones of the same processes, are this cluster's.
 */
export const TAKE_OVER_CLAIMS_ANNOTATION = 'machine.sapcloud.io/take-over-claims';
/** On Machines: followed by `/<name>`, the drain of a deletion waits until all of these are removed. Defined by Cluster API. */
export const PRE_DRAIN_DELETE_HOOK_PREFIX = 'pre-drain.delete.hook.machine.cluster.x-k8s.io';
/** On Machines: followed by `/<name>`, the drains of a deletion and of a maintenance wait until all of these are removed. */
export const PRE_DRAIN_HOOK_PREFIX = 'pre-drain.hook.machine.sapcloud.io';
/** On Machines: followed by `/<name>`, the VM is not deleted until all of these are removed. Defined by Cluster API. */
export const PRE_TERMINATE_HOOK_PREFIX = 'pre-terminate.delete.hook.machine.cluster.x-k8s.io';
/** On Machines and Nodes: `true` requests maintenance. */
export const MAINTENANCE_ANNOTATION = 'machine.sapcloud.io/maintenance';
/** On MachineDeployments: maximum number of unhealthy Machines that are replaced at the same time; int or percent. */
export const MAX_REPLACEMENTS_ANNOTATION = 'machine.sapcloud.io/max-replacements';
/** On Machines: an integer from 1; of two Machines that a rollout replaces or updates, the one with the smaller index is first. */
export const UPGRADE_INDEX_ANNOTATION = 'machine.sapcloud.io/upgrade-index';
/** On MachineDeployments: `<group>/<index>` or `<group>/<index>/first`; when its rollouts begin, among those of the same group. */
export const UPDATE_ORDER_ANNOTATION = 'machine.sapcloud.io/update-order';
/** On MachineDeployments: minimum size for autoscalers; with the maximum, it makes them a node group. */
export const NODE_GROUP_MIN_ANNOTATION = 'machine.sapcloud.io/cluster-api-autoscaler-node-group-min-size';
/** On MachineDeployments: maximum size for autoscalers; with the minimum, it makes them a node group. */
export const NODE_GROUP_MAX_ANNOTATION = 'machine.sapcloud.io/cluster-api-autoscaler-node-group-max-size';
/** On MachineClasses: resources that are reserved and not available to pods, such as `cpu=80m,memory=1Gi`; autoscalers get the rest. */
export const RESERVED_RESOURCES_ANNOTATION = 'machine.sapcloud.io/reserved-resources';
/**
 * On Machines and MachineDeployments: `graceful`, `unsafe` or `forced`; how a Machine is deleted. The value of the Machine takes precedence over that of its
 * MachineDeployment. Absent: as in the original.
 */
export const DELETION_POLICY_ANNOTATION = 'machine.sapcloud.io/deletion-policy';
/** On Machines: `true` drains the Node and then deletes the Machine; another value, or removal, aborts this. */
export const PREPARE_DELETION_ANNOTATION = 'machine.sapcloud.io/prepare-deletion';
/**
 * On MachineClasses and MachinePools of IronCore: an RFC 3339 time at most 24 hours ahead; until then, VMs without a Machine are deleted regardless of their
 * number, unless the driver omits the VMs of Machines that work.
 */
export const DELETE_ORPHAN_VMS_UNTIL_ANNOTATION = 'safety.machine.sapcloud.io/delete-orphan-vms-until';
/**
 * On Machines and MachinePools of IronCore, and on Volumes and NetworkInterfaces that a Machine has claimed: an RFC 3339 time at most 24
 * hours ahead; until then, machines that the runtime does not list are considered deleted, regardless of their number and of the runtime that responds.
 * Removed from a Machine when its new machine is requested.
 */
export const GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION = 'safety.machine.sapcloud.io/give-up-missing-machines-until';

// Our annotations that controllers record

/**
 * On Machines: name of the MachineClass that CreateMachine was last sent with. The VM is found and deleted with that class, even if
 * spec.class has changed since.
 */
export const VM_CLASS_ANNOTATION = 'machine.sapcloud.io/vm-class';
/**
 * On Machines: when a CreateMachine call without a recorded response was sent, RFC 3339. Only with drivers that may create a second
 * VM; while it is set, a call without a response is not repeated.
 */
export const CREATION_SENT_ANNOTATION = 'machine.sapcloud.io/creation-sent-at';
/**
 * On Machines of IronCore: beside `creation-sent-at`, the runtime that CreateMachine was sent to, by its name and the address of its
 * pool.
 */
export const CREATION_SENT_TO_ANNOTATION = 'machine.sapcloud.io/creation-sent-to';
/**
 * On Machines of IronCore whose creation had no response: their own UID, and percent-encoded IDs of up to five machines of the pool, separated
 * by spaces, that the runtime did not list meanwhile. It may have lost that of this Machine with them.
 */
export const MISSING_WITH_ANNOTATION = 'machine.sapcloud.io/missing-with';
/** On Machines of IronCore that are being deleted: state of the deletion of their machine at the runtime, and their own UID. */
export const DELETION_SENT_ANNOTATION = 'machine.sapcloud.io/deletion-sent';
/**
 * On Volumes and NetworkInterfaces of IronCore: MachinePool of the Machine that has claimed them. The process that serves the pool removes the claim when that Machine is gone.
 */
export const CLAIMED_FOR_POOL_ANNOTATION = 'machine.sapcloud.io/claimed-for-pool';
/** On Leases of pools of IronCore: their own UID, and those of the MachinePools that they were renewed for, separated by spaces. */
export const POOL_UIDS_ANNOTATION = 'machine.sapcloud.io/pool-uids';
/**
 * On Leases of pools of IronCore: their own UID, and the number of renewals of each process. It distinguishes a cluster from a copy that was
 * created from its backup.
 */
export const POOL_CLAIMS_ANNOTATION = 'machine.sapcloud.io/pool-claims';
/** On Machines: changes of their Node that the API server rejects. Removed when nothing is rejected. */
export const NODE_SYNC_REFUSED_ANNOTATION = 'machine.sapcloud.io/node-sync-refused';
/** On objects of another API: their UID, and that of the Machine that was created for them; they are deleted with that Machine. */
export const MADE_MACHINE_ANNOTATION = 'machine.sapcloud.io/made-machine-uid';
/** On MachineDeployments that were made for objects of another API: last seen number of replicas of that object. */
export const FRONT_END_REPLICAS_ANNOTATION = 'machine.sapcloud.io/front-end-replicas';
/** On MachineDeployments: `true` if Machinist has paused them, for the maintenance of a Cluster of another API. */
export const PAUSED_BY_FRONT_END_ANNOTATION = 'machine.sapcloud.io/paused-by-front-end';
/** On MachineSets: `true` if their template was changed as they were created. A rollback without a revision ignores them. */
export const CHANGED_ON_CREATION_ANNOTATION = 'machine.sapcloud.io/changed-on-creation';
/** On bootstrap token Secrets: UID of the Machine that the token is for. */
export const MACHINE_UID_ANNOTATION = 'machine.sapcloud.io/machine-uid';
/** On Machines that are deleted: since when no hook blocks the drain, RFC 3339; the drain timeout starts there. */
export const DRAIN_SINCE_ANNOTATION = 'machine.sapcloud.io/drain-since';
/** On Machines: start of the maintenance, RFC 3339. While it is set, their Nodes may have changes of the maintenance. */
export const MAINTENANCE_SINCE_ANNOTATION = 'machine.sapcloud.io/maintenance-since';
/** On Machines in maintenance: UID of the drained Node, `none` without a Node, `given-back` after it was uncordoned. */
export const MAINTENANCE_NODE_ANNOTATION = 'machine.sapcloud.io/maintenance-node';
/**
 * On Nodes: `true` if it was schedulable when Machinist cordoned it, or v0.62 of the original for a preservation, so that it is uncordoned if its
 * machine is kept.
 */
export const CORDONED_BY_MAINTENANCE_ANNOTATION = 'node.machine.sapcloud.io/cordoned-by-maintenance';
/** On Nodes labelled `candidate-for-update`: the MachineSet whose template they wait for. An update that was selected for another MachineSet is done again. */
export const CANDIDATE_FOR_SET_ANNOTATION = 'node.machine.sapcloud.io/candidate-for-set';
/** On Nodes: the MachineSet to whose template they were updated, after ` of ` that of their Machine, if it is another, and after ` at ` when. After a rollback to that they are updated back. */
export const UPDATED_FOR_SET_ANNOTATION = 'node.machine.sapcloud.io/updated-for-set';
/** On MachineClasses: resources and labels of a ready Node of this version of the class, JSON, for autoscalers; written once for each version, and again when a Node has another label. */
export const LEARNED_NODE_ANNOTATION = 'machine.sapcloud.io/learned-node';
/** On Machines that are being deleted: the deletion policy in force. It is only ever weakened. */
export const DELETION_POLICY_IN_FORCE_ANNOTATION = 'machine.sapcloud.io/deletion-policy-in-force';
/**
 * On Machines whose deletion is prepared: start of the preparation, RFC 3339, or empty while hooks block it; recorded before the Node is
 * changed.
 */
export const DELETION_PREPARATION_SINCE_ANNOTATION = 'machine.sapcloud.io/deletion-preparation-since';
/** On Machines that are deleted with policy `forced`: since when the driver is called to delete the VM, RFC 3339. */
export const FORCED_DELETION_SINCE_ANNOTATION = 'machine.sapcloud.io/forced-deletion-since';
/**
 * On MachineClasses: followed by `/<UID>`, the Machine of that UID was removed by force; its name and the provider ID of its VM, JSON,
 * until a list shows that the VM is gone.
 */
export const FORCED_REMOVAL_PREFIX = 'forced-removal.safety.machine.sapcloud.io';
/** On Leases of workload clusters, with `--cells`: names of the Secrets whose kubeconfigs lead to the cluster, separated by commas. */
export const CELL_WORKLOAD_SECRETS_ANNOTATION = 'machine.sapcloud.io/cell-workload-secrets';
/** On the Lease of the one target cluster of all cells: followed by `/<namespace>`, the namespace was managed with it. */
export const CELL_MEMBER_PREFIX = 'cell-member.machine.sapcloud.io';

// Our finalizers

/** On objects of another API: keeps them until the objects that were created for them are deleted. */
export const FRONT_END_FINALIZER = 'machine.sapcloud.io/front-end';
/**
 * On RoleBindings in the namespace of the Machines, set by the administrator: keeps the permissions of Machinist there until none of its
 * objects is left.
 */
export const ROLE_BINDING_FINALIZER = 'machine.sapcloud.io/role-binding';

// Of others

/** On Machines and Nodes: zone, as Kubernetes spells it. */
export const ZONE_LABEL = 'topology.kubernetes.io/zone';
/** Value that we write when a Machine has no priority. */
export const DEFAULT_PRIORITY = '3';
/** What kubectl apply remembers; never copied. */
export const LAST_APPLIED_CONFIGURATION_ANNOTATION = 'kubectl.kubernetes.io/last-applied-configuration';
