/*
 * Types of the conditions of our kinds. `npm run generate` makes docs/reference/conditions.md of them, and names them in the definitions.
 */

/** Of Machines, in `status.machineConditions`. For display: nothing is decided by them, because the original prunes them. */
export const MACHINE_CONDITION_TYPES = [
  /** Whether the VM exists; the reason says why not, such as VMVanished or an error code of the driver. */
  'VMCreated',
  /** Once the search for VMs has listed it: the state of the VM, in the provider's words. */
  'VMState',
  /** While it lasts: another client has asked the provider to delete the VM. */
  'VMDeletionRequested',
  /** Whether the VM has become a Node. */
  'NodeJoined',
  /** Whether the machine works: True in phases Running and Available, Unknown in phase Unknown. */
  'Healthy',
  /** While the Machine is being deleted: whether its Node is drained, and what the drain waits for. */
  'Drained',
  /** From the first request on: how far the [maintenance](../operations/maintenance.md#status) is. */
  'Maintenance',
  /** While it is so: what the API server refuses of all that the Node should have. */
  'NodeSyncRefused',
  /** While it is so: what the API server refuses to record of the Machine. */
  'RecordRefused',
  /** While it is so: annotations of the Machine or its Node [mean nothing](annotations.md#annotations-that-mean-nothing). */
  'InvalidAnnotation',
  /** While it is so: `spec.class` names another class than [that of the VM](../concepts/machine-lifecycle.md#one-vm-one-class). */
  'ClassChangeIgnored',
  /** While a deletion is [prepared](../operations/deletion.md), or that is undone: how far it is. */
  'DeletionPrepared',
] as const;

/** Of MachineSets, in `status.machineSetCondition`. */
export const MACHINE_SET_CONDITION_TYPES = [
  /** Machines could not be created or deleted; the message has the first refusal. */
  'ReplicaFailure',
  /** It has [too many machines](../runbooks/deployment-frozen.md): nothing is created. */
  'Frozen',
  /** The spec cannot be obeyed; the message says what to change. */
  'InvalidSpec',
  /** An annotation [means nothing](annotations.md#annotations-that-mean-nothing). */
  'InvalidAnnotation',
  /** `status.failedMachines` shows the newest ones only; the message says how many there are. */
  'FailedMachinesTruncated',
  /** What the API server refuses for Nodes of its machines, such as an impossible label of `nodeTemplate`. */
  'NodeSyncRefused',
] as const;

/** Of MachineDeployments, in `status.conditions`. */
export const MACHINE_DEPLOYMENT_CONDITION_TYPES = [
  /** Whether enough machines run. */
  'Available',
  /** How far a [rollout](../concepts/rollouts.md#conditions-of-a-machinedeployment) is. */
  'Progressing',
  /** Machines of a set could not be created or deleted; the message has the first refusal. */
  'ReplicaFailure',
  /** Why unhealthy machines are [not replaced](../runbooks/replacements-held.md). */
  'ReplacementHeld',
  /** What the API server refuses for Nodes of its machines, such as an impossible label of `nodeTemplate`. */
  'NodeSyncRefused',
  /** It, or a set of it, has [too many machines](../runbooks/deployment-frozen.md). */
  'Frozen',
  /** An annotation [means nothing](annotations.md#annotations-that-mean-nothing). */
  'InvalidAnnotation',
  /** An [outage](../operations/running.md#outages) of the target cluster. */
  'APIServerUnreachable',
  /** The spec cannot be obeyed; the message says what to change. */
  'InvalidSpec',
] as const;

export type MachineConditionType = (typeof MACHINE_CONDITION_TYPES)[number];
export type MachineSetConditionType = (typeof MACHINE_SET_CONDITION_TYPES)[number];
export type MachineDeploymentConditionType = (typeof MACHINE_DEPLOYMENT_CONDITION_TYPES)[number];
