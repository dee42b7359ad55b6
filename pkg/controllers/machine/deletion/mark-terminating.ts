import {
  DELETION_POLICY_IN_FORCE_ANNOTATION,
  DRAIN_SINCE_ANNOTATION,
  FORCED_DELETION_SINCE_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { next, waitFor } from '../../../work/reconcile/result.ts';
import { beginPhase, wasNeverRequested, hasMachineFinalizer } from '../../machine-facts/status.ts';
import { deletionStageOf } from '../../machine-facts/deletion-stage.ts';
import type { Collaborators } from '../collaborators.ts';
import { noVMWasRequested } from '../calls/no-vm-requested.ts';
import type { MachineContext, MachineStep } from '../context.ts';

type Deps = Pick<Collaborators, 'activities' | 'clock' | 'cursor' | 'drains' | 'isClassProtected'>;

/**
 * Begins a deletion, or finds it begun: by us, or by the original, at any stage. A preservation ends with it. Whether a VM was ever
 * asked for is recorded while the status can still tell: the class may be deleted together with its machines.
 */
export const markTerminating = (deps: Deps): MachineStep => ({
  name: 'mark-terminating',

  async run(ctx) {
    const { machine } = ctx;
    if (!hasMachineFinalizer(machine)) return waitFor('other finalizers');
    if (deletionStageOf(machine) !== undefined) return next;

    forgetFormerDeletion(machine);
    deps.drains.end(ctx, 'deletion');
    const isNeverAsked = await isForSure(deps, ctx);
    beginPhase(machine, 'Terminating', deps.clock.now());
    delete machine.status.currentStatus?.preserveExpiryTime;
    deps.cursor.begin(ctx, isNeverAsked);
    return next;
  },
});

/** What is recorded of a deletion that has not begun is of a former life of the Machine, such as one that came back from a backup. */
function forgetFormerDeletion({ metadata }: Pick<Machine, 'metadata'>): void {
  const {
    [DELETION_POLICY_IN_FORCE_ANNOTATION]: _policy,
    [FORCED_DELETION_SINCE_ANNOTATION]: _forcedSince,
    [DRAIN_SINCE_ANNOTATION]: _drainSince,
    ...others
  } = metadata.annotations ?? {};
  if (metadata.annotations !== undefined) metadata.annotations = others;
}

/**
 * That a machine without status has asked for nothing does not follow from the silence: another process may have been killed before it
 * wrote. But none asks before the class is protected, and a class that is protected stays so for as long as it has Machines.
 */
async function isForSure(deps: Deps, { observed, signal }: MachineContext): Promise<boolean> {
  if (!noVMWasRequested(deps.activities, observed)) return false;
  return wasNeverRequested(observed) || !(await deps.isClassProtected(observed, signal));
}
