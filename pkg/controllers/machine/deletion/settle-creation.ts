import { NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { ActivityKind } from '../../../activity/activity.ts';
import { fromTimestamp } from '../../../clock/clock.ts';
import { next, waitFor } from '../../../reconcile/result.ts';
import type { Launched, MachineContext, MachineStep } from '../context.ts';
import { noteUnanswered } from '../calls/unanswered.ts';
import { refusalOf, takenBy } from '../steps/claim.ts';

/** So long a running creation may end by itself: a VM that we are told of is deleted for certain. */
const PATIENCE_MS = 30_000;

/**
 * At most one call about a VM is in flight: a creation that runs is awaited (one that has not asked for the VM yet gives up by
 * itself), and aborted when it takes too long. The VM that it made is taken over, so that it is deleted.
 */
export const settleCreation: MachineStep = {
  name: 'settle-creation',

  run(ctx) {
    const { machine, activities, pass } = ctx;
    const { uid } = machine.metadata;
    const kinds = ['create', 'initialize'] as const;
    const running = kinds.find((kind) => activities.get(uid, kind)?.state === 'running');
    if (running !== undefined) {
      loseInterest(ctx, running);
      return waitFor('the creation of the VM to end');
    }
    const creation = activities.get(uid, 'create');
    if (creation?.state === 'done' && creation.result !== undefined) takeOver(ctx, creation.result);
    if (creation?.state === 'failed') noteUnanswered(ctx, creation.error, creation.settledAtMs);
    pass.afterWrite(() => {
      for (const kind of kinds) activities.forget(uid, kind);
    });
    return next;
  },
};

function loseInterest({ machine, activities, clock, pass }: MachineContext, kind: ActivityKind): void {
  const { uid, deletionTimestamp } = machine.metadata;
  const leftMs = (fromTimestamp(deletionTimestamp) ?? 0) + PATIENCE_MS - clock.now();
  if (leftMs > 0) {
    pass.alsoAfter(leftMs, 'the creation of the VM to end');
    return;
  }
  activities.abort(uid, kind, 'the machine is being deleted');
  pass.event('CreationAborted', 'The creation of the VM was given up, because the machine is being deleted.');
}

/** What another machine has is not taken over, nor deleted: the driver looks for the VM by name. */
function takeOver(ctx: MachineContext, launched: Launched): void {
  const rival = takenBy(ctx, launched);
  if (rival === undefined) adopt(ctx, launched);
  else noteUnanswered(ctx, refusalOf(launched, rival), ctx.clock.monotonicMs());
}

function adopt({ machine, target }: MachineContext, { providerID, nodeName, lastKnownState }: Launched): void {
  if ((machine.spec.providerID ?? '') === '' && providerID !== '') machine.spec.providerID = providerID;
  if (lastKnownState !== undefined) machine.status.lastKnownState = lastKnownState;
  if (target === undefined || nodeName === '') return;
  machine.metadata.labels = { [NODE_LABEL]: nodeName, ...machine.metadata.labels };
}
