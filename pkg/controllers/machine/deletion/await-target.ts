import { describeHeldUp, isHeldUpText } from '../../../gate/outage.ts';
import { next, requeue } from '../../../reconcile/result.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { setOperation } from '../../machines/status.ts';
import { isForced } from './cursor.ts';
import { deletionStageOf, describeStage, textOfStage, type DeletionStage } from '../../machines/deletion-stage.ts';

const LOOK_AGAIN_MS = 5_000;

/**
 * Holds a deletion while its target cluster is frozen, and says so: once, and no more when it is over. What runs goes on; a VM
 * that is being deleted is seen to its end, and to let go of the Machine takes the control cluster only.
 */
export const awaitTarget: MachineStep = {
  name: 'await-target',

  run(ctx) {
    const { machine, target, outages, activities } = ctx;
    const stage = deletionStageOf(machine);
    if (target === undefined || stage === undefined || isForced(ctx)) return next;

    const held = outages().filter(({ cluster }) => cluster === target.cluster);
    if (held.length === 0) {
      if (isHeldUpText(textOfStage(machine.status.lastOperation?.description ?? ''))) tell(ctx, stage, '');
      return next;
    }
    if (stage === 'release-finalizer' || activities.get(machine.metadata.uid, 'delete') !== undefined) return next;
    tell(ctx, stage, describeHeldUp(held));
    return requeue(LOOK_AGAIN_MS, 'the target cluster to be reachable');
  },
};

function tell({ machine, clock }: MachineContext, stage: DeletionStage, text: string): void {
  const description = describeStage(stage, text);
  setOperation(machine, { type: 'Delete', state: 'Processing', description }, clock.now());
}
