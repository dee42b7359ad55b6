import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { ListedMachine } from '../../../driver/driver.ts';
import { classIndex } from '../../../operator/indexes/class-index.ts';
import { type IsListed, type MachinesByIdentity, namesakesOf } from '../../vms/ownership.ts';
import type { Proved } from './brake.ts';
import type { Collection } from './collector.ts';
import type { ClassAccess, ClassList, Survey } from './survey.ts';

export interface UnitedVM extends Pick<Collection, 'vm' | 'isListed' | 'accessOf'>, Pick<Proved, 'access' | 'group'> {
  /** All lists that show it. */
  readonly shownBy: readonly ClassList[];
}

/**
 * The VMs of all lists by provider id. One that several classes list is reached by the first by name, unless lists of a whole cluster show it: then
 * by its own, and it counts with those of its class. VMs of which nothing tells the class count with one another.
 */
export function unite({ lists }: Pick<Survey, 'lists'>, identities: MachinesByIdentity): ReadonlyMap<string, UnitedVM> {
  const waysOf = waysIn(lists);
  const classOf = classOfVM(identities);
  const shown = new Map<
    string,
    { readonly vm: ListedMachine; readonly first: ClassList; readonly shownBy: ClassList[] }
  >();
  for (const list of lists.toSorted((a, b) => (a.key < b.key ? -1 : 1))) {
    for (const vm of list.vms) {
      const known = shown.get(vm.providerID);
      if (known === undefined) shown.set(vm.providerID, { vm, first: list, shownBy: [list] });
      else known.shownBy.push(list);
    }
  }
  const united = [...shown.values()].map(({ vm, first, shownBy }): UnitedVM => {
    const ofClass = shownBy.find(({ scope }) => scope === 'class');
    const key = ofClass?.key ?? classOf(vm);
    const access = ofClass ?? shownBy.find((list) => list.key === key) ?? first;
    return { vm, access, group: key ?? `${access.key}, of unknown class`, shownBy, ...waysOf(access) };
  });
  return new Map(united.map((one) => [one.vm.providerID, one]));
}

/** What the lists show beside a VM, and how a Machine's own VM is reached; by the list that the VM is taken from. */
function waysIn(lists: readonly ClassList[]): (access: ClassAccess) => Pick<UnitedVM, 'isListed' | 'accessOf'> {
  const byKey = new Map(
    lists.map((list) => [list.key, { list, ids: new Set(list.vms.map(({ providerID }) => providerID)) }]),
  );
  return (access) => {
    // Two drivers may have two ids for one VM.
    const ofNamesake = (namesake: Machine) => {
      const own = byKey.get(classIndex(namesake)[0] ?? '');
      return own?.list.driver.provider === access.driver.provider ? own : undefined;
    };
    const isListed: IsListed = (providerID, namesake) =>
      byKey.get(access.key)?.ids.has(providerID) === true || ofNamesake(namesake)?.ids.has(providerID) === true;
    return { isListed, accessOf: (namesake) => ofNamesake(namesake)?.list ?? access };
  };
}

/**
 * The key of the class of a VM: that of its Machine, or of Machines of its set, whose names differ in the last part alone. Undefined where several
 * classes have such Machines, too.
 */
function classOfVM(identities: MachinesByIdentity): (vm: ListedMachine) => string | undefined {
  const bySet = new Map<string, Set<string>>();
  for (const [name, machine] of identities.byName) {
    const keys = bySet.get(setOf(name)) ?? new Set();
    bySet.set(setOf(name), keys.add(classIndex(machine)[0] ?? ''));
  }
  return (vm) => {
    const owner = identities.byProviderID.get(vm.providerID) ?? namesakesOf(vm, identities)[0];
    if (owner !== undefined) return classIndex(owner)[0];
    const [key, ...others] = bySet.get(setOf(vm.machineName)) ?? [];
    return others.length === 0 ? key : undefined;
  };
}

/** A name without dashes is that of no set. */
function setOf(machineName: string): string {
  const end = machineName.lastIndexOf('-');
  return end < 0 ? machineName : machineName.slice(0, end + 1);
}
