import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';

/** Source component of the Events on Machines; the name of the original's program. */
export const MACHINE_EVENT_SOURCE = 'machine-controller';

/**
 * Every Event that a Machine can get, by reason. A healthy life has four: VMCreated, NodeJoined, Drained, VMDeleted.
 * docs/reference/events.md says more of each; a test compares.
 */
export const MACHINE_EVENTS = {
  VMCreated: 'Normal',
  VMAdopted: 'Normal',
  VMInitialized: 'Normal',
  NodeJoined: 'Normal',
  NodeRejoined: 'Normal',
  InvalidClass: 'Warning',
  InvalidAnnotation: 'Warning',
  CreateFailed: 'Warning',
  InitializeFailed: 'Warning',
  StaleNode: 'Warning',
  RecordRefused: 'Warning',
  NodeSyncRefused: 'Warning',
  NodeLabelCorrected: 'Warning',
  CreationTimeout: 'Warning',
  Unhealthy: 'Warning',
  HealthTimeout: 'Warning',
  VMVanished: 'Warning',
  VMDeletionRequested: 'Warning',
  ReplacementDelayed: 'Warning',
  Preserved: 'Normal',
  PreservationEnded: 'Normal',
  NotACandidate: 'Warning',
  UpdateSelected: 'Normal',
  UpdateReady: 'Normal',
  UpdateSucceeded: 'Normal',
  UpdateFailed: 'Warning',
  MaintenanceStarted: 'Normal',
  InMaintenance: 'Normal',
  MaintenanceEnded: 'Normal',
  MaintenanceRefused: 'Warning',
  NodeDeleted: 'Normal',
  CreationAborted: 'Normal',
  WaitingForHooks: 'Normal',
  DeletionPreparing: 'Normal',
  DeletionNotPrepared: 'Warning',
  DeletionAborted: 'Normal',
  AbortTooLate: 'Warning',
  DeletionPolicyKept: 'Warning',
  DrainBlocked: 'Warning',
  DrainForced: 'Warning',
  DrainFailed: 'Warning',
  Drained: 'Normal',
  DetachFailed: 'Warning',
  SharedProviderID: 'Warning',
  VMDeletionFailed: 'Warning',
  ForcedRemoval: 'Warning',
  ForcedRemovalHeld: 'Warning',
  VMDeleted: 'Normal',
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
