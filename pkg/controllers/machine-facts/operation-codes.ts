/**
 * What stands in `status.lastOperation.errorCode` where no driver's code does: why an operation waits. Decisions follow from
 * these words and never from the description, which is for people. The field is one that the original stores too, so that
 * they outlive the process, and the manager.
 */
export const OPERATION_CODES = [
  'NeverAsked',
  'FinalizerRefused',
  'NameTaken',
  'PreparationFailed',
  'VMBeingCreated',
  'VMBeingInitialized',
  'NodeUnidentified',
  'RecordRefused',
  'WaitingForHooks',
  'DrainBlocked',
  'ClusterOutage',
  'VMUnseen',
  'NoNodesInTarget',
  'ZoneUnhealthy',
  'ReplacementStopped',
  'ReplacementPaced',
  'TooManyReplacements',
  'SafetyGrace',
] as const;

export type OperationCode = (typeof OPERATION_CODES)[number];
