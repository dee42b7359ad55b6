import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import type { ObjectEvent } from '../../machine-set/events.ts';

/** A set was frozen. Says no number: equal Events are merged into one, and how many there are tells how often it happened. */
export function frozeSet(object: MachineSet): ObjectEvent<MachineSet> {
  const message = `Froze MachineSet ${object.metadata.name}: it has too many machines`;
  return { object, type: 'Normal', reason: 'FrozeMachineSet', message };
}

/** A set was unfrozen. */
export function unfrozeSet(object: MachineSet): ObjectEvent<MachineSet> {
  return {
    object,
    type: 'Normal',
    reason: 'UnfrozeMachineSet',
    message: `Unfroze MachineSet ${object.metadata.name}`,
  };
}
