import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { validateMachineSet } from '../../apis/machine/v1alpha1/validation.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { MachineSetDeps, SetPass } from './step.ts';

/** The set of a pass as the cache shows it at this moment; undefined when it is about to go, is another one, or cannot be obeyed any more. */
export function presentSet(
  { machineSets }: Pick<MachineSetDeps, 'machineSets'>,
  { key, object }: Pick<SetPass, 'key' | 'object'>,
): MachineSet | undefined {
  const set = machineSets.get(key);
  if (set === undefined || set.metadata.uid !== object.metadata.uid || isBeingDeleted(set)) return undefined;
  return validateMachineSet(set).length > 0 ? undefined : set;
}
