import { next } from '../../../work/reconcile/result.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';
import { identityConflictError } from '../identity/identity-claims.ts';
import { refuseVM } from './launch.ts';

/**
 * Refuses a VM that another Machine has: what is recorded here is what will be drained and deleted with this machine. The driver is
 * asked again later. What a creation with such an answer has really made, nobody knows: it counts as one without answer.
 */
export const claim = (deps: Pick<Collaborators, 'clock' | 'calls' | 'unanswered' | 'claims'>): MachineStep => ({
  name: 'claim',

  run(ctx) {
    const { launched, resolved, log } = ctx;
    if (launched === undefined || resolved === undefined) return next;
    const rival = deps.claims.takenBy(ctx, launched);
    if (rival === undefined) return next;

    const error = identityConflictError(launched, rival);
    deps.unanswered.ended(ctx.machine, error, deps.clock.monotonicMs());
    deps.claims.doubt(ctx.machine);
    log.warn({ providerID: launched.providerID, other: rival.name }, 'rejected a VM of another machine');
    return refuseVM(deps, ctx, resolved, error, 'the driver to return the VM of this machine');
  },
});
