import { providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine, MachineCondition } from '../../../apis/machine/v1alpha1/machine.ts';
import { conditionOf } from '../../../work/reconcile/conditions.ts';
import { VM_DELETION_REQUESTED } from '../../machine-facts/vm-states.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';
import type { Fact } from '../explanation.ts';
import { noticeStep } from './condition-step.ts';

/** How somebody gets out of it: what was asked of the provider cannot be taken back there. */
const REMEDY =
  'Delete this Machine of machines.machine.sapcloud.io (`kubectl delete mc`): its Node is drained, then its VM is deleted.';

const NOTICE = {
  name: 'vm-deletion',
  type: VM_DELETION_REQUESTED,
  logged: 'deletion of the VM requested by another client',
} as const;

/**
 * Says that somebody has asked the provider to delete the VM, which is kept for its Machine. It is not followed: the Node is healthy and its
 * pods have no notice yet, and whoever deletes all of them at the provider by mistake must not lose them here.
 */
export const vmDeletion = ({ clock, vmStates }: Pick<Collaborators, 'clock' | 'vmStates'>): MachineStep =>
  noticeStep({ ...NOTICE, clock }, ({ machine }) => {
    const providerID = providerIDOf(machine);
    const listed = providerID === '' ? undefined : vmStates.get(providerID);
    if (listed === undefined) return 'unknown';
    const { deletion } = listed;
    if (deletion === undefined) return 'none';
    const message = `The deletion of VM ${providerID} was requested at the provider: ${deletion}. The VM is kept until this Machine is deleted.`;
    return { reason: 'DeletionRequested', message, remedy: REMEDY, fields: { providerID, deletion } };
  });

/** Adds that somebody wants the VM deleted. */
export const whileVMDeletionRequested: Fact = (machine, rest) => {
  const explanation = rest();
  const shown = shownBy(machine);
  if (shown === undefined) return explanation;
  const { reason = VM_DELETION_REQUESTED, message = '' } = shown;
  const told = `${explanation.message} ${message}`;
  return explanation.waitingFor === undefined
    ? { ...explanation, reason, message: told, nextStep: REMEDY }
    : { ...explanation, message: told };
};

function shownBy({ status }: Machine): MachineCondition | undefined {
  return conditionOf(status?.machineConditions, VM_DELETION_REQUESTED);
}
