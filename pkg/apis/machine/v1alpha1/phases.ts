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

/** Outcome of the last operation. */
export type OperationState = 'Processing' | 'Failed' | 'Successful';

/** Kind of the last operation. */
export type OperationType = 'Create' | 'Update' | 'InPlaceUpdate' | 'DrainNode' | 'HealthCheck' | 'Delete';

/** Status of a condition. */
export type ConditionStatus = 'True' | 'False' | 'Unknown';

/** Conditions of MachineSets. `Frozen` is written by the overshoot safety. */
export type MachineSetConditionType =
  'ReplicaFailure' | 'Frozen' | 'InvalidSpec' | 'InvalidAnnotation' | 'FailedMachinesTruncated' | 'NodeSyncRefused';

/** Conditions of MachineDeployments. `APIServerUnreachable`, `InvalidSpec` and `InvalidAnnotation` are ours; the original ignores them. */
export type MachineDeploymentConditionType =
  | 'Available'
  | 'Progressing'
  | 'ReplicaFailure'
  | 'Frozen'
  | 'APIServerUnreachable'
  | 'InvalidSpec'
  | 'InvalidAnnotation';
