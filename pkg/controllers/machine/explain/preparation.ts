import { DELETION_POLICY_ANNOTATION, PREPARE_DELETION_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { isPreparationAsked, preparationShownBy } from '../../machines/prepared-deletion.ts';
import type { Explanation } from './explanation.ts';

const ABORT = `To keep the machine, remove annotation ${PREPARE_DELETION_ANNOTATION}.`;
const WEAKEN = `To delete it without, set annotation ${DELETION_POLICY_ANNOTATION} to unsafe or forced.`;

/** The explanation of a machine whose deletion is prepared, or the preparation of which is being undone; undefined for any other. */
export function explainPreparation(machine: Machine): Explanation | undefined {
  const { reason, message = '' } = preparationShownBy(machine) ?? {};
  switch (reason) {
    case 'started':
      return {
        reason: 'PreparingDeletion',
        message,
        waitingFor: 'hooks to be removed, and the pods to leave',
        nextStep: `The Machine is deleted. ${ABORT}`,
      };
    case 'completed':
      return {
        reason: 'PreparedDeletion',
        message,
        waitingFor: 'the Machine to be deleted',
        nextStep: 'Its VM is deleted.',
      };
    case 'aborting':
      return {
        reason: 'AbortingDeletion',
        message,
        waitingFor: 'its Node to be uncordoned',
        nextStep: 'The machine goes on as before.',
      };
    case 'failed':
      return isPreparationAsked(machine)
        ? {
            reason: 'DeletionNotPrepared',
            message,
            waitingFor: 'what the message names',
            nextStep: `The attempt is retried. ${ABORT} ${WEAKEN}`,
          }
        : {
            reason: 'AbortFailed',
            message,
            waitingFor: 'the API server to allow it',
            nextStep: 'The attempt is retried; the machine goes on as before.',
          };
    default:
      return undefined;
  }
}
