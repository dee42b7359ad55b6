import { nodeNameOf, phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import {
  CRITICAL_COMPONENTS_TAINT,
  SELECTED_FOR_UPDATE_LABEL,
  UPDATE_RESULT_LABEL,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { controllerOf } from '../../../apis/meta.ts';
import { conditionOf } from '../../../work/reconcile/conditions.ts';
import { textOfStage } from '../../machine-facts/deletion-stage.ts';
import { CANCELED, IN_PLACE_UPDATE } from './reason.ts';
import type { Explanation } from '../explanation.ts';

/** The explanation of a machine that is, or is to be, updated in place; undefined for any other. */
export function explainInPlace(machine: Machine): Explanation | undefined {
  const description = machine.status?.lastOperation?.description ?? '';
  switch (phaseOf(machine)) {
    case 'Running':
      return explainRunning(machine);
    case 'InPlaceUpdating':
      return {
        reason: 'InPlaceUpdating',
        message: `Node ${nodeNameOf(machine)} is drained and being updated.`,
        waitingFor: `label ${UPDATE_RESULT_LABEL} on the Node, from the agent that updates it`,
        nextStep: 'It becomes Running; if there is no result by the in-place update timeout, the update fails.',
      };
    case 'InPlaceUpdateSuccessful':
      return {
        reason: 'InPlaceUpdateSuccessful',
        message: description,
        waitingFor: `Node ${nodeNameOf(machine)} to become healthy`,
        nextStep: atHealthTimeout(machine, 'It becomes Running'),
      };
    case 'InPlaceUpdateFailed':
      return {
        reason: 'InPlaceUpdateFailed',
        message: description,
        waitingFor: `someone to repair Node ${nodeNameOf(machine)} and label it ${UPDATE_RESULT_LABEL}=successful`,
        nextStep: atHealthTimeout(machine, 'It becomes Running'),
      };
    default:
      return undefined;
  }
}

function explainRunning(machine: Machine): Explanation | undefined {
  const { reason, message } = conditionOf(machine.status?.conditions, IN_PLACE_UPDATE) ?? {};
  const { type, description = '', errorCode } = machine.status?.lastOperation ?? {};
  const node = nodeNameOf(machine);
  if (message === CANCELED) return undefined;
  if (reason === 'CandidateForUpdate') {
    return {
      reason,
      message: `Node ${node} is healthy and waiting for its turn to be updated in place.`,
      waitingFor: `label ${SELECTED_FOR_UPDATE_LABEL} on the Node, from its MachineDeployment or from you`,
      nextStep: 'The Node is drained, then updated.',
    };
  }
  if (reason === 'UpdateSuccessful') return explainUpdated(machine);
  if (reason !== 'SelectedForUpdate') return undefined;
  const isDraining = type === 'DrainNode';
  const progress = isDraining ? textOfStage(description) : '';
  return {
    reason: isDraining && errorCode === 'DrainBlocked' ? errorCode : 'DrainingForUpdate',
    message: progress === '' ? `Node ${node} is being drained for an in-place update.` : progress,
    waitingFor: 'the pods to leave',
    nextStep: 'The Node is updated; after the drain timeout pods are deleted.',
  };
}

/** The Machine shows neither whether its Node was uncordoned nor its taints: what is said holds before and after. */
function explainUpdated(machine: Machine): Explanation {
  const node = nodeNameOf(machine);
  const updated = `Node ${node} is healthy, and was updated in place.`;
  if (controllerOf(machine) === undefined)
    return {
      reason: 'Running',
      message: updated,
      waitingFor: undefined,
      nextStep: `Nothing, once the user who selected Node ${node} has uncordoned it and removed its update labels.`,
    };
  return {
    reason: 'Running',
    message:
      `${updated} Pods are scheduled on it once taint ${CRITICAL_COMPONENTS_TAINT} is removed, which Gardener does; ` +
      `elsewhere, run "kubectl taint node ${node} ${CRITICAL_COMPONENTS_TAINT}:NoSchedule-".`,
    waitingFor: undefined,
    nextStep: `Nothing; in a rollout, its MachineDeployment uncordons Node ${node}.`,
  };
}

function atHealthTimeout({ spec }: Machine, otherwise: string): string {
  return spec?.disableHealthTimeout === true
    ? `${otherwise}; until then the machine is kept, because disableHealthTimeout is set.`
    : `${otherwise}; at the health timeout it becomes Failed and is replaced.`;
}
