import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';

/** Source component of the Events on Machines; the name of the original's program. */
export const MACHINE_EVENT_SOURCE = 'machine-controller';

/**
 * All Events of Machines, by reason. A healthy machine has four: VMCreated, NodeJoined, Drained, VMDeleted. Each comment says when the
 * Event is emitted and, after an arrow, what to do; `npm run generate` writes them to docs/reference/events.md.
 */
export const MACHINE_EVENTS = {
  /** the driver created the VM */
  VMCreated: 'Normal',
  /** the driver already had a VM for this machine, created by an earlier process */
  VMAdopted: 'Normal',
  /**
   * a new Machine has `spec.providerID`, for example after a [restore](../operations/outages.md#steps), but the driver does not find this VM for it;
   * the Machine keeps the ID, and gets no other VM → correct the ID, or the tags of the VM, which may name an earlier Machine
   */
  VMNotFound: 'Warning',
  /** the driver initialized the VM after an earlier failure; only drivers with a separate initialization step */
  VMInitialized: 'Normal',
  /** the Node is healthy for the first time; the machine is Running */
  NodeJoined: 'Normal',
  /** the Node is healthy again */
  NodeRejoined: 'Normal',
  /**
   * the MachineClass, its Secret or its driver is missing or invalid, or its Secret cannot be read → correct the object that the message names; no restart is needed
   */
  InvalidClass: 'Warning',
  /**
   * a Machine of the same name is in another namespace, and both would be one Node of the [target cluster of all cells](../operations/cells.md#one-target-cluster);
   * the VM of this one is not created before → find the other one with `kubectl get machines -A --field-selector metadata.name=NAME`, and delete the one that is not needed
   */
  NameTaken: 'Warning',
  /**
   * `spec.class.name` was changed although the Machine has a VM; the class of the VM
   * [stays in use](../concepts/machine-lifecycle.md#one-vm-one-class), and condition ClassChangeIgnored reports this until the field is set back → set `spec.class.name` back; to get a machine of another class, delete this one
   */
  ClassChangeIgnored: 'Warning',
  /**
   * annotations of the Machine or its Node have values that [have no effect](annotations.md#annotations-without-effect); condition InvalidAnnotation reports the same until they are corrected → set a value that the message allows
   */
  InvalidAnnotation: 'Warning',
  /**
   * the driver could not find or create the VM; retried with increasing delays → see the code in [error codes](error-codes.md)
   */
  CreateFailed: 'Warning',
  /** the driver could not initialize the VM; retried with increasing delays → see the code in [error codes](error-codes.md) */
  InitializeFailed: 'Warning',
  /**
   * the new VM has the name of an existing Node; the machine becomes Failed and is replaced → delete the old Node if it is not needed
   */
  StaleNode: 'Warning',
  /**
   * the Node shows no provider ID, or that of another VM, and the target cluster is that of [all cells](../operations/cells.md#one-target-cluster):
   * it is not known to be the Node of this machine → have the kubelet or a cloud controller manager set `spec.providerID` of Nodes; delete the
   * Node of an earlier VM
   */
  NodeUnidentified: 'Warning',
  /**
   * the API server, a policy or a webhook rejects a change of the Machine: its VM or Node name (retried until the creation timeout), its status,
   * or another change (the status is written without it) → correct what rejects it; give Nodes names of at most 63 characters
   */
  RecordRefused: 'Warning',
  /**
   * the API server, a policy or a webhook rejects a part of the labels, annotations and taints of the Node; the other parts are applied, and the
   * rejected one is retried with increasing delays → correct `nodeTemplate`, or what rejects it
   */
  NodeSyncRefused: 'Warning',
  /**
   * label `node` was missing, or named a Node of another machine or a Node that does not exist; it was set to the Node of this machine → find out who
   * changed the label
   */
  NodeLabelCorrected: 'Warning',
  /**
   * no VM, or no healthy Node, within the creation timeout; the machine is Failed and replaced → check the VM's console and the kubelet's log; raise `creationTimeout` if machines are slow
   */
  CreationTimeout: 'Warning',
  /** the Node has a bad condition or is missing; the machine is Unknown → the message names the conditions */
  Unhealthy: 'Warning',
  /** the Node was unhealthy for the whole health timeout; the machine is Failed and replaced */
  HealthTimeout: 'Warning',
  /**
   * the provider reported twice that the VM does not exist, and the Node is not healthy; the machine is Failed and replaced → find out who
   * deleted the VM
   */
  VMVanished: 'Warning',
  /**
   * another client requested the deletion of the VM at the provider, for example by deleting its Machine of Cluster API; the deletion is held, and
   * the Node keeps working → delete
   * the Machine (`mc`): its Node is drained, then its VM is deleted
   */
  VMDeletionRequested: 'Warning',
  /**
   * the machine is past its health timeout, or past its creation timeout after its Node has joined, its VM is gone, or its Node was deleted while it was not ready, but it is not replaced yet: too many machines of the MachineDeployment are being
   * replaced or were replaced within the health timeout, too many machines of the zone are unhealthy, it is in maintenance or preserved, or
   * `spec.disableHealthTimeout` is set; repeated every 30 min if its Node was deleted → restore the zone, wait, or raise annotation `machine.sapcloud.io/max-replacements` of the MachineDeployment
   */
  ReplacementDelayed: 'Warning',
  /** the machine is preserved, and until when */
  Preserved: 'Normal',
  /** the preservation ended: its time is over, it is no longer requested, or the machine recovered */
  PreservationEnded: 'Normal',
  /**
   * the Node was labelled `selected-for-update`, but not `candidate-for-update`: nothing happens → set the other label too, or remove
   * this one
   */
  NotACandidate: 'Warning',
  /** the Node was selected to be updated in place, and is being drained */
  UpdateSelected: 'Normal',
  /**
   * the Node was selected to be updated in place, but the update waits while too many machines of its zone, this one among them, are unhealthy; repeated each hour →
   * restore the zone; the update then continues. If the update is to repair the machines, label each Machine `force-drain=True`
   */
  UpdateDelayed: 'Warning',
  /** the Node is drained and may be updated */
  UpdateReady: 'Normal',
  /** the Node was updated in place */
  UpdateSucceeded: 'Normal',
  /**
   * the in-place update failed, or had no result within its timeout → check the Node; label it `node.machine.sapcloud.io/update-result=successful`
   * when it is repaired, or is up to date already
   */
  UpdateFailed: 'Warning',
  /** maintenance was requested by annotation */
  MaintenanceStarted: 'Normal',
  /**
   * the Node is cordoned and drained; the machine is not replaced, even if its Node becomes unhealthy → remove annotation
   * `machine.sapcloud.io/maintenance` when you are done
   */
  InMaintenance: 'Normal',
  /** maintenance is no longer requested; the Node is uncordoned, and the machine's timeouts start again */
  MaintenanceEnded: 'Normal',
  /**
   * the API server, a policy or a webhook rejects a change of the Node for the maintenance; retried every 30 s → allow what the message names
   */
  MaintenanceRefused: 'Warning',
  /**
   * the API server, a policy or a webhook rejects a change of the Node for an in-place update or a preservation; retried every 30 s → allow what
   * the message names
   */
  NodeChangeRefused: 'Warning',
  /** the Node was deleted, so the Machine is deleted */
  NodeDeleted: 'Normal',
  /** the Machine is being deleted, and the running creation of its VM was aborted */
  CreationAborted: 'Normal',
  /**
   * annotations delay the drain or the deletion of the VM; the message names them → wait until their owners remove them; see
   * [hooks](../concepts/drain.md#hooks)
   */
  WaitingForHooks: 'Normal',
  /** the deletion was requested by annotation `machine.sapcloud.io/prepare-deletion`; the Node is drained before the Machine is deleted */
  DeletionPreparing: 'Normal',
  /**
   * the API server refuses to delete the Machine, or to uncordon its Node after an abort; retried → correct what refuses it
   */
  DeletionNotPrepared: 'Warning',
  /** a prepared deletion was aborted in time; the Node is uncordoned */
  DeletionAborted: 'Normal',
  /** a prepared deletion was aborted after the Machine had been deleted → nothing; the deletion continues */
  AbortTooLate: 'Warning',
  /**
   * the annotation requests a stricter policy than the one with which the machine is already being deleted → nothing; [a policy can only be
   * weakened](../operations/deletion.md)
   */
  DeletionPolicyKept: 'Warning',
  /**
   * a drain cannot continue; the message names the pods, what they wait for, and when they are deleted → fix the PodDisruptionBudget that the
   * message names, or wait for the drain timeout
   */
  DrainBlocked: 'Warning',
  /** pods are deleted instead of evicted; the message says why */
  DrainForced: 'Warning',
  /**
   * a drain ended with pods left, or with an error → a normal drain is retried; after a forced one, the deletion continues
   */
  DrainFailed: 'Warning',
  /** the Node is empty */
  Drained: 'Normal',
  /**
   * a VolumeAttachment could not be deleted after a forced drain; the deletion of the Machine continues without it → delete the VolumeAttachment that the message
   * names
   */
  DetachFailed: 'Warning',
  /**
   * another Machine has the same `spec.providerID`; the driver searches for the VM of this machine by name, and does not touch a VM of another
   * Machine → find out who changed `spec.providerID`, and check the VM at the provider
   */
  SharedProviderID: 'Warning',
  /**
   * the driver could not look for the VM or delete it, or for a minute has returned Aborted (not deleted yet), or
   * [NotFound although the Node is Ready](../concepts/safety.md#vms-that-a-driver-does-not-find); retried with increasing delays → see
   * the code in [error codes](error-codes.md)
   */
  VMDeletionFailed: 'Warning',
  /**
   * the VM could not be deleted within `--forced-deletion-timeout`, and the Machine was removed anyway; the message names the provider ID →
   * restore the provider; see [what is left](../operations/deletion.md#what-a-forced-removal-leaves-behind)
   */
  ForcedRemoval: 'Warning',
  /**
   * the VM could not be deleted within `--forced-deletion-timeout`, but the Machine is kept, because its VM could not be found without it; the
   * message says why → fix what the message names
   */
  ForcedRemovalHeld: 'Warning',
  /** the VM was deleted, or did not exist; the message says which */
  VMDeleted: 'Normal',
  /**
   * a forced deletion did not wait for a target cluster that is unreachable → delete the Node when its cluster is reachable again
   */
  NodeLeftBehind: 'Warning',
} as const satisfies Record<string, 'Normal' | 'Warning'>;

export type MachineEventReason = keyof typeof MACHINE_EVENTS;

export interface MachineEvent {
  readonly object: Machine;
  readonly type: 'Normal' | 'Warning';
  readonly reason: MachineEventReason;
  readonly message: string;
}

/** Takes Events; never throws and never makes its caller wait. */
export interface MachineEventSink {
  event(event: MachineEvent): void;
}
