import { UNFREEZE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { ObjectEvent } from './events.ts';

/**
 * The Events of a set. They carry no numbers, so that a set which is frozen again and again has one Event with a count; condition Frozen
 * and the log say how many machines there are. The texts begin as the original's.
 */

/** A set was frozen because it has too many machines. */
export function frozeSet(object: MachineSet): ObjectEvent<MachineSet> {
  return {
    object,
    type: 'Normal',
    reason: 'FrozeMachineSet',
    message: `SafetyController: Froze MachineSet ${object.metadata.name} due to replica overshooting; for the number of machines and how to release it, see condition Frozen`,
  };
}

/** A set was unfrozen because it has few enough machines again. */
export function unfrozeSmallSet(object: MachineSet): ObjectEvent<MachineSet> {
  return unfroze(object, 'it no longer has too many machines');
}

/** A set was unfrozen because its annotation, or that of its MachineDeployment, asks for it. */
export function unfrozeReleasedSet(object: MachineSet): ObjectEvent<MachineSet> {
  return unfroze(object, `requested by annotation ${UNFREEZE_ANNOTATION}`);
}

function unfroze(object: MachineSet, why: string): ObjectEvent<MachineSet> {
  const message = `SafetyController: Unfroze MachineSet ${object.metadata.name}: ${why}`;
  return { object, type: 'Normal', reason: 'UnfrozeMachineSet', message };
}
