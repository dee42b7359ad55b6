import { MACHINE_FINALIZER } from '../../../apis/machine/v1alpha1/labels.ts';
import { next, waitFor } from '../../../reconcile/result.ts';
import type { Clock } from '../../../clock/clock.ts';
import { beginPhase } from '../../machines/status.ts';
import { deletionStageOf } from '../../machines/deletion-stage.ts';
import type { MachineStep } from '../context.ts';
import type { DeletionCursor } from './cursor.ts';

interface Deps {
  readonly clock: Clock;
  readonly cursor: DeletionCursor;
}

/** Begins a deletion, or finds it begun: by us, or by the original, at any stage. A preservation ends with it. */
export const markTerminating = (deps: Deps): MachineStep => ({
  name: 'mark-terminating',

  run(ctx) {
    const { machine } = ctx;
    if (machine.metadata.finalizers?.includes(MACHINE_FINALIZER) !== true) return waitFor('other finalizers');
    if (deletionStageOf(machine) !== undefined) return next;

    beginPhase(machine, 'Terminating', deps.clock.now());
    delete machine.status.currentStatus?.preserveExpiryTime;
    deps.cursor.advance(ctx, 'vm-status');
    return next;
  },
});
