import { phaseOf, providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { next, stop } from '../../../work/reconcile/result.ts';
import { isBeingCreated } from '../../machine-facts/status.ts';
import type { MachineStep } from '../context.ts';

/**
 * Ends the pass of a machine that has its VM, or will get none any more: a Failed machine is replaced, not created again. The
 * steps behind this one make the VM.
 */
export const settled: MachineStep = {
  name: 'settled',

  run({ machine }) {
    const phase = phaseOf(machine);
    if (phase === 'Failed' || phase === 'Terminating') return stop;
    return isBeingCreated(machine) || providerIDOf(machine) === '' ? next : stop;
  },
};
