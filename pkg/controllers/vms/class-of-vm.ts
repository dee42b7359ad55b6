import { classNameOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { ListedMachine } from '../../driver/driver.ts';
import { classIndex } from '../../operator/indexes/class-index.ts';
import { type MachinesByIdentity, namesakesOf } from './ownership.ts';

/**
 * The key of the class of a VM: that of its Machine, or of Machines of its set, whose names differ in the last part alone, or of that set itself.
 * Undefined where several classes have such Machines, too.
 */
export function classOfVM(
  identities: MachinesByIdentity,
  sets: readonly MachineSet[],
): (vm: ListedMachine) => string | undefined {
  const templates = new Map<string, string | undefined>(
    sets.map(({ metadata: { namespace = '', name }, spec }) => {
      const className = classNameOf({ spec: spec.template?.spec });
      return [`${name}-`, className === '' ? undefined : `${namespace}/${className}`];
    }),
  );
  const bySet = new Map<string, Set<string>>();
  for (const [name, machine] of identities.byName) {
    const keys = bySet.get(setOf(name)) ?? new Set();
    bySet.set(setOf(name), keys.add(classIndex(machine)[0] ?? ''));
  }
  return (vm) => {
    const owner = identities.byProviderID.get(vm.providerID) ?? namesakesOf(vm, identities)[0];
    if (owner !== undefined) return classIndex(owner)[0];
    const set = setOf(vm.machineName);
    const [key, ...others] = bySet.get(set) ?? [templates.get(set)];
    return others.length === 0 ? key : undefined;
  };
}

/** A name without dashes is that of no set. */
function setOf(machineName: string): string {
  const end = machineName.lastIndexOf('-');
  return end < 0 ? machineName : machineName.slice(0, end + 1);
}
