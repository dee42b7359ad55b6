import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { keyOf } from '../../apis/meta.ts';
import { freezeSet } from '../safety/overshoot/marks.ts';
import { CREATION_LIMIT_REACHED, describeStop, isSpent, isStopped } from './creation-brake.ts';
import { deploymentOf } from './creation-room.ts';
import { reachedCreationLimit } from './events.ts';
import type { MachineSetParts } from './parts.ts';

/**
 * Freezes a set without a MachineDeployment that has created more within a minute than anybody can want; a MachineDeployment is frozen
 * by its own controller.
 */
export async function stopRunaway(
  parts: Pick<MachineSetParts, 'brake' | 'machineDeployments' | 'writer' | 'recorder' | 'clock' | 'log'>,
  set: MachineSet,
  signal: AbortSignal,
): Promise<void> {
  const spending = parts.brake.spending(set.metadata.uid);
  if (!isSpent(spending) || isStopped(set.status?.machineSetCondition) || deploymentOf(parts, set) !== undefined)
    return;
  const message = describeStop(`MachineSet ${set.metadata.name}`, spending);
  await freezeSet(parts.writer, set, { reason: CREATION_LIMIT_REACHED, message }, parts.clock.now(), signal);
  parts.recorder.event(reachedCreationLimit(set, message));
  parts.log.warn({ key: keyOf(set), ...spending }, 'froze a machine set that created too much');
}
