import { UNFREEZE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import type { ObjectEvent } from '../../machine-set/events.ts';
import type { Limits } from './limits.ts';

/** A set was frozen with `count` machines. The number is that of this moment: it is told once for each freeze, whatever comes after. */
export function frozeSet(object: MachineSet, count: number, { high, low }: Limits): ObjectEvent<MachineSet> {
  const why = `it has ${count} machines, the limit is ${high}; released at ${low}`;
  return {
    object,
    type: 'Normal',
    reason: 'FrozeMachineSet',
    message: `Froze MachineSet ${object.metadata.name}: ${why}`,
  };
}

/** A set was unfrozen because it has no more than `low` machines. */
export function unfrozeSmallSet(object: MachineSet, count: number, { low }: Limits): ObjectEvent<MachineSet> {
  return unfroze(object, `it has ${count} machines, at most ${low} release it`);
}

/** A set was unfrozen because its annotation, or that of its MachineDeployment, asks for it. */
export function unfrozeReleasedSet(object: MachineSet): ObjectEvent<MachineSet> {
  return unfroze(object, `annotation ${UNFREEZE_ANNOTATION} asks for it`);
}

function unfroze(object: MachineSet, why: string): ObjectEvent<MachineSet> {
  const message = `Unfroze MachineSet ${object.metadata.name}: ${why}`;
  return { object, type: 'Normal', reason: 'UnfrozeMachineSet', message };
}
