import { providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { ActivityKind } from '../../../work/activity/activity.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { next, waitFor } from '../../../work/reconcile/result.ts';
import type { Collaborators } from '../collaborators.ts';
import type { Launched, MachineContext, MachineStep } from '../context.ts';
import { mayBeForeign } from './unseen-vm.ts';

/** So long a running creation may end by itself: a VM that we are told of is deleted for certain. */
const PATIENCE_MS = 30_000;

type Deps = Pick<Collaborators, 'clock' | 'activities' | 'unanswered' | 'claims' | 'vmClasses'>;

/**
 * At most one call about a VM is in flight: a creation that runs is awaited (one that has not asked for the VM yet gives up by
 * itself), and aborted when it takes too long. The VM that it made is taken over, so that it is deleted.
 */
export const settleCreation = (deps: Deps): MachineStep => ({
  name: 'settle-creation',

  run(ctx) {
    const { activities } = deps;
    const { machine, pass } = ctx;
    const { uid } = machine.metadata;
    const kinds = ['create', 'initialize'] as const;
    const running = kinds.find((kind) => activities.get(uid, kind)?.state === 'running');
    if (running !== undefined) {
      abandonOverdueCreation(deps, ctx, running);
      return waitFor('the CreateMachine call to end');
    }
    const creation = activities.get(uid, 'create');
    if (creation?.state === 'done' && creation.result !== undefined) takeOver(deps, ctx, creation.result);
    // Also of a call that has ended while its Machine was not shown, and of which nothing else is left.
    if (creation !== undefined || providerIDOf(machine) === '') deps.vmClasses.record(machine);
    if (creation?.state === 'failed') deps.unanswered.ended(machine, creation.error, creation.settledAtMs);
    if (creation?.state === 'done') deps.unanswered.told(machine, creation.result?.how, creation.settledAtMs);
    pass.afterWrite(() => {
      for (const kind of kinds) activities.forget(uid, kind);
    });
    return next;
  },
});

function abandonOverdueCreation(
  { activities, clock }: Deps,
  { machine, pass }: MachineContext,
  kind: ActivityKind,
): void {
  const { uid, deletionTimestamp } = machine.metadata;
  const leftMs = (fromTimestamp(deletionTimestamp) ?? 0) + PATIENCE_MS - clock.now();
  if (leftMs > 0) {
    pass.alsoAfter(leftMs, 'the CreateMachine call to end');
    return;
  }
  activities.abort(uid, kind, 'the machine is being deleted');
  pass.event('CreationAborted', 'The creation of the VM was aborted because the machine is being deleted.');
}

/** What another machine has is not taken over, nor deleted: the driver looks for the VM by name. */
function takeOver(deps: Deps, ctx: MachineContext, launched: Launched): void {
  if (deps.claims.takenBy(ctx, launched) === undefined) adopt(ctx, launched);
}

function adopt({ machine, nodes }: MachineContext, { providerID, nodeName, lastKnownState }: Launched): void {
  if (providerIDOf(machine) === '' && providerID !== '') machine.spec.providerID = providerID;
  if (lastKnownState !== undefined) machine.status.lastKnownState = lastKnownState;
  if (nodes === undefined || nodeName === '' || mayBeForeign(nodes.get(nodeName), machine)) return;
  machine.metadata.labels = { [NODE_LABEL]: nodeName, ...machine.metadata.labels };
}
