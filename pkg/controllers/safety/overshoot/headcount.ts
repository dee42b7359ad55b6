import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { templateLabelsOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { OwnerlessVM } from '../ownerless-vms.ts';

/** Machines of a set that carry all its template's labels, whatever their phase, those on their way out included. */
export function machinesIn(set: Pick<MachineSet, 'spec'>, controlled: readonly Machine[]): number {
  const wanted = Object.entries(templateLabelsOf(set.spec.template));
  return controlled.filter(({ metadata }) => wanted.every(([label, value]) => metadata.labels?.[label] === value))
    .length;
}

/**
 * VMs that no Machine has, by the name of the set that made them: Machines are named after their set, so it is the set whose
 * name, the longest of several, begins the VM's name. VMs of unknown sets count for none.
 */
export function ownerlessBySet(setNames: readonly string[], vms: readonly OwnerlessVM[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  const longestFirst = setNames.toSorted((a, b) => b.length - a.length);
  for (const { machineName } of vms) {
    const name = longestFirst.find((candidate) => machineName.startsWith(`${candidate}-`));
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}
