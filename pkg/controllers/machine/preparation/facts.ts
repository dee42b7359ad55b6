import { PREPARE_DELETION_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { policySettingOf } from '../../machine-facts/deletion-policy.ts';
import { hooksOf } from '../../machine-facts/hooks.ts';
import { frontEndField } from '../../machine-facts/front-end-field.ts';
import { isPreparationRequested, preparationShownBy } from '../../machine-facts/prepared-deletion.ts';
import type { Explanation } from '../explanation.ts';

function howToAbort(machine: Machine): string {
  const field = frontEndField(machine, 'delete');
  const what = field === undefined ? `remove annotation ${PREPARE_DELETION_ANNOTATION}` : `set ${field} to false`;
  return `To keep the machine, ${what}.`;
}

function howToWeaken(machine: Machine): string {
  return `To delete it without waiting for the drain, set ${policySettingOf(machine)} to unsafe or forced.`;
}

/** The explanation of a machine whose deletion is prepared, or the preparation of which is being undone; undefined for any other. */
export function explainPreparation(machine: Machine): Explanation | undefined {
  const { reason, message = '' } = preparationShownBy(machine) ?? {};
  switch (reason) {
    case 'started':
    case 'blocked':
      return {
        reason: reason === 'blocked' ? 'DrainBlocked' : 'PreparingDeletion',
        message,
        waitingFor: hooksOf(machine, 'deletion').length > 0 ? 'hooks to be removed' : 'the pods to leave',
        nextStep: `The Machine is deleted. ${howToAbort(machine)}`,
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
        nextStep: 'The machine continues as before.',
      };
    case 'failed':
      return isPreparationRequested(machine)
        ? {
            reason: 'DeletionNotPrepared',
            message,
            waitingFor: 'the problem in the message to be resolved',
            nextStep: `The attempt is retried. ${howToAbort(machine)} ${howToWeaken(machine)}`,
          }
        : {
            reason: 'AbortFailed',
            message,
            waitingFor: 'the API server to allow it',
            nextStep: 'The attempt is retried; the machine continues as before.',
          };
    default:
      return undefined;
  }
}
