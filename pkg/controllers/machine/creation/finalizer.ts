import { withFinalizer } from '../../../apis/finalizers.ts';
import { MACHINE_FINALIZER } from '../../../apis/machine/v1alpha1/labels.ts';
import { next, waitFor } from '../../../work/reconcile/result.ts';
import { hasMachineFinalizer } from '../../machine-facts/status.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';
import { noVMWasRequested } from '../calls/no-vm-requested.ts';

/**
 * Puts our finalizer on a Machine before anything costs money, and ends the pass: the one that launches has seen it. MachineSets
 * create their Machines with it. A new machine that is refused it becomes Failed at its creation timeout (`timeout`): it has no VM that
 * would be left behind when its set deletes it.
 */
export const finalizer = (deps: Pick<Collaborators, 'activities'>, timeout: MachineStep): MachineStep => ({
  name: 'finalizer',

  async run(ctx) {
    const { machine, observed } = ctx;
    if (hasMachineFinalizer(machine)) return next;
    const result = noVMWasRequested(deps.activities, observed) ? await timeout.run(ctx) : next;
    if (result.kind !== 'next') return result;
    machine.metadata.finalizers = withFinalizer(machine, MACHINE_FINALIZER);
    return waitFor('the finalizer to be recorded');
  },
});
