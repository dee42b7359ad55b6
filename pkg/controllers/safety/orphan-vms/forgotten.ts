import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import type { Lister } from '../../../cache/lister.ts';
import type { ObjectEvents } from '../../../events/event-sink.ts';
import type { Logger } from '../../../log/logger.ts';
import { classIndex } from '../../indexes/class-index.ts';
import { forgotMachines } from './events.ts';

/** Who is told of Machines that a restore has forgotten. */
export interface ForgottenParts {
  readonly classes: Lister<MachineClass>;
  readonly recorder: ObjectEvents<MachineClass>;
  readonly log: Logger;
}

/**
 * Tells, for each class, of Machines that existed before the control cluster was set back to an earlier state and whose VMs nobody has
 * now: before the orphan loop, whose evidence begins anew, finds them.
 */
export function tellOfForgotten({ classes, recorder, log }: ForgottenParts, forgotten: readonly Machine[]): void {
  const byClass = Map.groupBy(forgotten.filter(hasVM), (machine) => classIndex(machine)[0] ?? '');
  for (const [key, machines] of byClass) {
    const names = machines.map(({ metadata }) => metadata.name).toSorted();
    log.warn(
      { class: key, machines: names.length },
      'the control cluster was set back, and no longer has machines whose VMs exist',
    );
    const machineClass = classes.get(key);
    if (machineClass !== undefined) recorder.event(forgotMachines(machineClass, names));
  }
}

function hasVM({ spec }: Machine): boolean {
  return ((spec as Machine['spec'] | undefined)?.providerID ?? '') !== '';
}
