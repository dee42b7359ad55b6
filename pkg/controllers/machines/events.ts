import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';

/** Source component of the Events on Machines; the name of the original's program. */
export const MACHINE_EVENT_SOURCE = 'machine-controller';

/**
 * Every Event that a Machine can get, by reason. A healthy life has four: VMCreated, NodeJoined, Drained, VMDeleted.
 * A comment says when, and after an arrow what to do: `npm run generate` makes the table of docs/reference/events.md of it.
 */
export const MACHINE_EVENTS = {
  /** the driver has made the VM */
  VMCreated: 'Normal',
  /** the driver already had a VM for this machine, made by an earlier process */
  VMAdopted: 'Normal',
  /** a driver that initializes VMs in a step of its own has done so after a failure */
  VMInitialized: 'Normal',
  /** the Node is healthy for the first time; the machine is Running */
  NodeJoined: 'Normal',
  /** the Node is healthy again */
  NodeRejoined: 'Normal',
  /**
   * MachineClass, its Secret or its driver is missing or wrong → correct the object that the message names; nothing has to be restarted
   */
  InvalidClass: 'Warning',
  /**
   * `spec.class.name` was changed although there is a VM; its own class [stays in
   * use](../concepts/machine-lifecycle.md#one-vm-one-class), condition ClassChangeIgnored says the same while it lasts → set
   * `spec.class.name` back; for a machine of another class, delete this one
   */
  ClassChangeIgnored: 'Warning',
  /**
   * annotations of the Machine or its Node whose values [have no effect](annotations.md#annotations-that-mean-nothing); condition InvalidAnnotation reports the same until they are corrected → set a value that the message allows
   */
  InvalidAnnotation: 'Warning',
  /**
   * the driver could not find or make the VM; it is tried again, with increasing delays → see the code in [error codes](error-codes.md)
   */
  CreateFailed: 'Warning',
  /** the driver could not initialize the VM; it is tried again → see the code in [error codes](error-codes.md) */
  InitializeFailed: 'Warning',
  /**
   * the new VM has the name of an existing Node; the machine is abandoned → delete the old Node if it is not needed
   */
  StaleNode: 'Warning',
  /**
   * the API server, a policy or a webhook refuses to record the VM or the Node name of the machine (it is tried again, up to the creation
   * timeout), another change of the Machine (its status is written without), or its status → correct what refuses it; give Nodes names of
   * at most 63 characters
   */
  RecordRefused: 'Warning',
  /**
   * the API server, a policy or a webhook refuses a part of what the Node should have; the rest is applied, and the part is tried again,
   * with increasing delays → correct `nodeTemplate`, or what refuses it
   */
  NodeSyncRefused: 'Warning',
  /**
   * label `node` was gone, or named a Node that is not this machine's; it names the one now that shows the machine's name → find out who
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
   * the provider does not know the VM any more, twice, and the Node does not work; the machine is Failed and replaced → find out who
   * deleted the VM
   */
  VMVanished: 'Warning',
  /**
   * another client has asked the provider to delete the VM, for example by deleting its Machine of Cluster API; the deletion is held, and the Node keeps working → delete
   * the Machine (`mc`): its Node is drained, then its VM is deleted
   */
  VMDeletionRequested: 'Warning',
  /**
   * past the health timeout, or without its VM, but too many others of the MachineDeployment are replaced just now, were replaced in this health timeout, or
   * too many machines of the zone are unhealthy → restore the zone, or wait, or raise annotation `machine.sapcloud.io/max-replacements`
   * of the MachineDeployment
   */
  ReplacementDelayed: 'Warning',
  /** the machine is preserved, and until when */
  Preserved: 'Normal',
  /** its time is over, it is no longer requested, or the machine recovered */
  PreservationEnded: 'Normal',
  /**
   * the Node was labelled `selected-for-update`, but not `candidate-for-update`: nothing happens → set the other label too, or remove
   * this one
   */
  NotACandidate: 'Warning',
  /** the Node was selected to be updated in place; it is drained */
  UpdateSelected: 'Normal',
  /** the Node is drained and may be updated */
  UpdateReady: 'Normal',
  /** the Node was updated in place */
  UpdateSucceeded: 'Normal',
  /**
   * the in-place update failed, or had no result in time → check the Node; label it `node.machine.sapcloud.io/update-result=successful`
   * when it is repaired
   */
  UpdateFailed: 'Warning',
  /** maintenance was requested by annotation */
  MaintenanceStarted: 'Normal',
  /**
   * the Node is cordoned and drained: whatever happens to it, the machine is not replaced → remove annotation
   * `machine.sapcloud.io/maintenance` when you are done
   */
  InMaintenance: 'Normal',
  /** maintenance is no longer requested; the Node is uncordoned, and the machine's timeouts start again */
  MaintenanceEnded: 'Normal',
  /**
   * the API server, a policy or a webhook refuses what maintenance changes on the Node; it is tried again every 30 s → allow what the
   * message names
   */
  MaintenanceRefused: 'Warning',
  /** the Node was deleted; its machine is deleted, too */
  NodeDeleted: 'Normal',
  /** the machine is deleted and the running creation of its VM was aborted */
  CreationAborted: 'Normal',
  /**
   * annotations delay the drain, or the deletion of the VM; the message names them → each is removed by its owner; see
   * [hooks](../concepts/drain.md#hooks)
   */
  WaitingForHooks: 'Normal',
  /** the deletion was asked for by annotation `machine.sapcloud.io/prepare-deletion`: the Node is drained first */
  DeletionPreparing: 'Normal',
  /**
   * the API server refuses to delete the Machine, or to uncordon its Node after an abort; it is tried again → correct what refuses it
   */
  DeletionNotPrepared: 'Warning',
  /** a prepared deletion was taken back in time; the Node is uncordoned */
  DeletionAborted: 'Normal',
  /** a prepared deletion was taken back after the Machine was deleted → nothing: it is deleted */
  AbortTooLate: 'Warning',
  /**
   * the annotation asks for a more careful policy than the one by which the machine is already being deleted → nothing: [a policy can
   * only be weakened](../operations/deletion.md)
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
   * after a forced drain a VolumeAttachment could not be deleted; abandoned after a while → delete the VolumeAttachment that the message
   * names
   */
  DetachFailed: 'Warning',
  /**
   * another Machine has the same `spec.providerID`: the driver looks for this machine's VM by its name, and a VM of another Machine is left
   * alone → find out who changed `spec.providerID`, and look for the VM at the provider
   */
  SharedProviderID: 'Warning',
  /**
   * the driver could not delete the VM, or has said Aborted (not gone yet) for a minute; it is tried again, with increasing delays → see
   * the code in [error codes](error-codes.md)
   */
  VMDeletionFailed: 'Warning',
  /**
   * the VM could not be deleted within `--forced-deletion-timeout`: the Machine is removed anyway; the message names the provider ID →
   * see that the provider works again; [what is left](../operations/deletion.md#what-a-forced-removal-leaves-behind)
   */
  ForcedRemoval: 'Warning',
  /**
   * the same, but the Machine is kept, because its VM could not be found again; the message says why → fix what the message names
   */
  ForcedRemovalHeld: 'Warning',
  /** the VM is gone; the message says whether there was one */
  VMDeleted: 'Normal',
  /**
   * a forced deletion did not wait for a target cluster that cannot be reached → delete the Node when its cluster is back
   */
  NodeLeftBehind: 'Warning',
} as const satisfies Record<string, 'Normal' | 'Warning'>;

/** Reason of an Event on a Machine. */
export type MachineEventReason = keyof typeof MACHINE_EVENTS;

/** One Event to tell of a Machine. */
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
