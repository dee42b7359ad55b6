import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { keyOf } from '../../apis/meta.ts';
import type { ObjectEvents } from '../../kube/events/event-sink.ts';
import { requeue, type Step } from '../../work/reconcile/result.ts';
import { unfrozeReleasedSet } from './freeze-events.ts';
import { isFreezeMarked, setFreeze } from './freeze-marks.ts';
import type { OwnerDeps } from './owner-deps.ts';
import type { OwnerPass } from './owner-controller.ts';

export interface ReleaseDeps extends Pick<OwnerDeps, 'brake' | 'writer' | 'log'> {
  /** Tells of freezes under the manager's name. */
  readonly recorder: ObjectEvents<MachineSet>;
}

/** Step: ends the freeze of a set whose annotation asks for that. */
export const release = (deps: ReleaseDeps): Step<OwnerPass<MachineSet>> => ({
  name: 'release',
  async run({ object: set, signal }) {
    await releaseSet(deps, set, signal);
    return requeue(0, 'its release to be recorded');
  },
});

/**
 * Ends the freeze of a set, whoever began it, because its annotation or that of its MachineDeployment asks for it. The overshoot safety
 * sees the annotation too, and leaves the set alone for a while.
 */
export async function releaseSet(deps: ReleaseDeps, set: MachineSet, signal: AbortSignal): Promise<void> {
  deps.brake.forget(set.metadata.uid);
  await setFreeze.unfreeze(deps.writer, set, signal);
  if (!isFreezeMarked(setFreeze.marksOf(set))) return;
  deps.recorder.event(unfrozeReleasedSet(set));
  deps.log.info({ key: keyOf(set) }, 'unfroze a machine set on request');
}
