import { classNameOf, vmClassNameOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { keyOf } from '../../apis/meta.ts';

/** Name of the index of Machines by their MachineClass. */
export const CLASS_INDEX = 'class';

/**
 * The index function: keys of the MachineClasses that a Machine needs, which are in its namespace. First the one that its VM was asked
 * for with, then the one that it names, if that is another one by now. A class of another kind counts by its name all the same: the
 * kind of a class may be changed while there is a VM.
 */
export function classIndex(machine: Machine): string[] {
  const { namespace = '' } = machine.metadata;
  const names = new Set([vmClassNameOf(machine), classNameOf(machine)]);
  return [...names].filter((name) => name !== '').map((name) => keyOf({ metadata: { namespace, name } }));
}
