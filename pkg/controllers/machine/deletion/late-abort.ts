import { next } from '../../../work/reconcile/result.ts';
import { hasPreparationBegun, isPreparationRequested } from '../../machine-facts/prepared-deletion.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';

/** Tells anyone who takes back a prepared deletion after its DELETE that it is too late. */
export const lateAbort = ({ reportedOnce }: Pick<Collaborators, 'reportedOnce'>): MachineStep => ({
  name: 'late-abort',

  run({ machine, pass }) {
    const isLate = hasPreparationBegun(machine) && !isPreparationRequested(machine);
    if (reportedOnce.becomes(machine.metadata.uid, 'AbortTooLate', isLate))
      pass.event('AbortTooLate', 'The prepared deletion was aborted too late: the Machine is already being deleted.');
    return next;
  },
});
