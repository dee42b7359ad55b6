/** Phases of a Machine; the absent phase means that no VM has been confirmed yet. */
export type MachinePhase =
  | 'Pending'
  | 'Available'
  | 'Running'
  | 'Terminating'
  | 'Unknown'
  | 'Failed'
  | 'CrashLoopBackOff'
  | 'InPlaceUpdating'
  | 'InPlaceUpdateSuccessful'
  | 'InPlaceUpdateFailed';

export type OperationState = 'Processing' | 'Failed' | 'Successful';

export type OperationType = 'Create' | 'Update' | 'InPlaceUpdate' | 'DrainNode' | 'HealthCheck' | 'Delete';

export type ConditionStatus = 'True' | 'False' | 'Unknown';
