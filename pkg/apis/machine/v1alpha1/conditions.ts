/*
 * Types of the conditions of Machinist's kinds. `npm run generate` writes them to docs/reference/conditions.md and to the CRDs.
 */

/** Of Machines, in `status.machineConditions`. For display: no decision depends on them, because the original prunes them. */
export const MACHINE_CONDITION_TYPES = [
  /** Whether the VM exists; if not, the reason shows why, such as VMVanished or an error code of the driver. */
  'VMCreated',
  /** The state of the VM, as named by the provider, after a search for VMs has listed it. */
  'VMState',
  /** Another client has requested the deletion of the VM at the provider. */
  'VMDeletionRequested',
  /** Whether the VM has become a Node. */
  'NodeJoined',
  /** The Node was deleted, and why the Machine [is kept](../concepts/machine-lifecycle.md#deleted-nodes) for now. */
  'NodeDeleted',
  /** Whether the machine is healthy: True in phases Running and Available, Unknown in phase Unknown. */
  'Healthy',
  /** During a deletion, whether the Node is drained, and what the drain waits for. */
  'Drained',
  /** Progress of a [maintenance](../operations/maintenance.md#status); exists from the first request on. */
  'Maintenance',
  /** The API server rejects a part of the labels, annotations and taints of the Node. */
  'NodeSyncRefused',
  /** The API server rejects a change of the Machine. */
  'RecordRefused',
  /** Annotations of the Machine or its Node [have no effect](annotations.md#annotations-without-effect). */
  'InvalidAnnotation',
  /** `spec.class` names another class than [that of the VM](../concepts/machine-lifecycle.md#one-vm-one-class). */
  'ClassChangeIgnored',
  /** Progress of the [preparation of a deletion](../operations/deletion.md), or of its abort. */
  'DeletionPrepared',
] as const;

/** Of MachineSets, in `status.machineSetCondition`. */
export const MACHINE_SET_CONDITION_TYPES = [
  /** Machines could not be created or deleted, or a change is rejected; the message has the error. */
  'ReplicaFailure',
  /** The MachineSet has [too many machines](../runbooks/deployment-frozen.md): nothing is created. */
  'Frozen',
  /** The spec is invalid; the message has the required change. */
  'InvalidSpec',
  /** An annotation [has no effect](annotations.md#annotations-without-effect). */
  'InvalidAnnotation',
  /** `status.failedMachines` contains only the newest ones; the message has their total number. */
  'FailedMachinesTruncated',
  /** The API server rejects changes of Nodes of its machines, for example an invalid label in `nodeTemplate`. */
  'NodeSyncRefused',
] as const;

/** Of MachineDeployments, in `status.conditions`. */
export const MACHINE_DEPLOYMENT_CONDITION_TYPES = [
  /** Whether enough machines are available. */
  'Available',
  /** Progress of a [rollout](../concepts/rollouts.md#conditions-of-a-machinedeployment). */
  'Progressing',
  /** Machines of a MachineSet could not be created or deleted, or a change is rejected; the message has the error. */
  'ReplicaFailure',
  /** Why unhealthy machines are [not replaced](../runbooks/replacements-held.md). */
  'ReplacementHeld',
  /** The API server rejects changes of Nodes of its machines, for example an invalid label in `nodeTemplate`. */
  'NodeSyncRefused',
  /** The MachineDeployment or one of its MachineSets has [too many machines](../runbooks/deployment-frozen.md). */
  'Frozen',
  /** An annotation [has no effect](annotations.md#annotations-without-effect). */
  'InvalidAnnotation',
  /** The target cluster has an [outage](../operations/outages.md#outages). */
  'APIServerUnreachable',
  /** The spec is invalid; the message has the required change. */
  'InvalidSpec',
] as const;

export type MachineConditionType = (typeof MACHINE_CONDITION_TYPES)[number];
export type MachineSetConditionType = (typeof MACHINE_SET_CONDITION_TYPES)[number];
export type MachineDeploymentConditionType = (typeof MACHINE_DEPLOYMENT_CONDITION_TYPES)[number];
