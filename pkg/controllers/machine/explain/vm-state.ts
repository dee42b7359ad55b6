import { providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { dated, conditionOf, withCondition } from '../../../work/reconcile/conditions.ts';
import { VM_STATE } from '../../machine-facts/vm-states.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';
import { conditionStep } from './condition-step.ts';

/** Shows the state of the VM in the provider's words, once a list has told it. Display only. */
export const vmState = ({ clock, vmStates }: Pick<Collaborators, 'clock' | 'vmStates'>): MachineStep =>
  conditionStep('vm-state', ({ machine, pass }, reported) => {
    const { uid } = machine.metadata;
    const providerID = providerIDOf(machine);
    const state = providerID === '' ? undefined : vmStates.get(providerID)?.state;
    const { machineConditions } = machine.status;
    const shown = conditionOf(machineConditions, VM_STATE);
    if (state === undefined || state === shown?.reason || state === reported.get(uid)) return;
    const message = `The provider lists VM ${providerID} in state ${state}.`;
    const current = { type: VM_STATE, status: 'True', reason: state, message } as const;
    // Its reason is what it is about: the state has lasted since then.
    machine.status.machineConditions = withCondition(machineConditions, dated(current, [], clock.now()));
    pass.afterWrite(() => void reported.set(uid, state));
  });
