import { next } from '../../../reconcile/result.ts';
import { hasPreparationBegun, isPreparationAsked } from '../../machines/prepared-deletion.ts';
import type { MachineStep } from '../context.ts';
import type { News } from '../news.ts';

interface Deps {
  readonly news: News;
}

/** Tells anyone who takes back a prepared deletion after its DELETE that it is too late. */
export const lateAbort = ({ news }: Deps): MachineStep => ({
  name: 'late-abort',

  run({ machine, pass }) {
    const isLate = hasPreparationBegun(machine) && !isPreparationAsked(machine);
    if (news.becomes(machine.metadata.uid, 'AbortTooLate', isLate))
      pass.event('AbortTooLate', 'The prepared deletion was aborted too late: the Machine is already being deleted.');
    return next;
  },
});
