import { MACHINE_FINALIZER } from '../../../apis/machine/v1alpha1/labels.ts';
import { next, waitFor } from '../../../reconcile/result.ts';
import type { MachineStep } from '../context.ts';

/**
 * Puts our finalizer on a Machine before anything costs money, and ends the pass: the one that launches has seen it. MachineSets
 * create their Machines with it.
 */
export const finalizer: MachineStep = {
  name: 'finalizer',

  run({ machine }) {
    const finalizers = machine.metadata.finalizers ?? [];
    if (finalizers.includes(MACHINE_FINALIZER)) return next;
    machine.metadata.finalizers = [...finalizers, MACHINE_FINALIZER];
    return waitFor('the finalizer to be seen');
  },
};
