import { phaseOf, providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { next, stop } from '../../../work/reconcile/result.ts';
import { isBeingCreated } from '../../machine-facts/status.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';

/**
 * Ends the pass of a machine that has its VM, or will get none any more: a Failed machine is replaced, not created again. The
 * steps behind this one make the VM. What a call still told that was on its way when the machine came to run, nobody waits for any more.
 */
export const settled = ({ activities }: Pick<Collaborators, 'activities'>): MachineStep => ({
  name: 'settled',

  run({ machine, pass }) {
    const phase = phaseOf(machine);
    if (phase === 'Failed' || phase === 'Terminating') return stop;
    if (isBeingCreated(machine) || providerIDOf(machine) === '') return next;
    pass.afterWrite(() => {
      activities.forget(machine.metadata.uid, 'create');
      activities.forget(machine.metadata.uid, 'initialize');
    });
    return stop;
  },
});
