import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { keyOf } from '../../apis/meta.ts';
import { setFreeze } from '../replicas/freeze-marks.ts';
import { CREATION_LIMIT_REACHED, describeStop, isSpent } from '../replicas/creation-brake.ts';
import { deploymentOfSet } from './creation-room.ts';
import { reachedCreationLimit } from '../replicas/events.ts';
import type { MachineSetDeps } from './deps.ts';

/**
 * Freezes a set without a MachineDeployment that has created more within a minute than anybody can want, and puts back a label that
 * somebody took away; a MachineDeployment is frozen by its own controller. Until its annotation releases it, it creates nothing.
 */
export async function stopRunaway(
  deps: Pick<MachineSetDeps, 'brake' | 'machineDeployments' | 'writer' | 'recorder' | 'clock' | 'log'>,
  set: MachineSet,
  signal: AbortSignal,
): Promise<void> {
  const { isStopped, isLabelled } = setFreeze.marksOf(set);
  if (isStopped) {
    if (isLabelled) return;
    await setFreeze.label(deps.writer, set, signal);
    deps.log.warn({ key: keyOf(set) }, 'restored the freeze label of a machine set that created too many machines');
    return;
  }
  const spending = deps.brake.spending(set.metadata.uid);
  if (!isSpent(spending) || deploymentOfSet(deps, set) !== undefined) return;
  const message = describeStop(`MachineSet ${set.metadata.name}`, spending);
  await setFreeze.freeze(deps.writer, set, { reason: CREATION_LIMIT_REACHED, message }, deps.clock.now(), signal);
  deps.recorder.event(reachedCreationLimit(set));
  deps.log.warn({ key: keyOf(set), ...spending }, 'froze a machine set that created too many machines');
}
