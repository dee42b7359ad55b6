import { GIVEN_BACK, leavesNodeUntouched, WITHOUT_NODE } from '../../machine-facts/maintenance.ts';

export interface MaintenanceFacts {
  /** On the Machine, or on its Node. */
  readonly isRequested: boolean;
  /** Whether it is recorded on the Machine that it began. */
  readonly isRecorded: boolean;
  /** What is recorded of its Node: the UID of the one that was emptied, that there is none, or that it was given back. */
  readonly emptied: string | undefined;
  /** UID of the machine's Node; undefined when it has none. */
  readonly nodeUID: string | undefined;
  /** Reason of the Node's condition. */
  readonly shown: string | undefined;
  readonly isCordoned: boolean;
  /** Whether the timeouts of the machine count from when its Node was given back; true where none counts. */
  readonly isClockRestarted: boolean;
}

export type MaintenancePlan =
  | 'leave-alone'
  | 'begin'
  | 'empty'
  | 'keep'
  | 'withdraw'
  | 'give-back'
  | 'restart-clock'
  | 'end';

/**
 * Decides about the maintenance of a machine. That it began is recorded before its Node is touched, and forgotten when all is as before:
 * anyone who takes over in between goes on where it stands.
 *
 * | asked | recorded        | Node                                              | plan                                     |
 * |-------|-----------------|---------------------------------------------------|------------------------------------------|
 * | no    | no              | says nothing of it                                | leave-alone                              |
 * | no    | no              | says that it goes on: the record was lost         | give-back                                |
 * | yes   | no              | any                                               | begin                                    |
 * | yes   | yes             | is another one than was emptied, or not empty yet | empty                                    |
 * | yes   | yes             | was emptied, says nothing of it, not cordoned     | empty: its cluster was set back          |
 * | yes   | yes             | was emptied, or there is none and that is noted   | keep                                     |
 * | no    | yes             | any                                               | withdraw                                 |
 * | no    | that it is over | does not say so                                   | give-back                                |
 * | no    | that it is over | says so, or there is none                         | restart-clock, unless that was done: end |
 */
export function planMaintenance(facts: MaintenanceFacts): MaintenancePlan {
  const { isRequested, isRecorded, emptied, nodeUID, shown, isCordoned, isClockRestarted } = facts;
  if (isRequested) {
    if (!isRecorded) return 'begin';
    const isSetBack = nodeUID !== undefined && leavesNodeUntouched(shown) && !isCordoned;
    return emptied === (nodeUID ?? WITHOUT_NODE) && !isSetBack ? 'keep' : 'empty';
  }
  if (!isRecorded) return nodeUID === undefined || leavesNodeUntouched(shown) ? 'leave-alone' : 'give-back';
  if (emptied !== GIVEN_BACK) return 'withdraw';
  if (nodeUID !== undefined && shown !== 'NotInMaintenance') return 'give-back';
  return isClockRestarted ? 'end' : 'restart-clock';
}
