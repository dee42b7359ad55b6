import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { keyOf } from '../../../apis/meta.ts';
import type { ListedMachine } from '../../../driver/driver.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import type { Lister } from '../../../kube/cache/lister.ts';
import { classIndex } from '../../../operator/indexes/class-index.ts';
import { classOfVM } from '../../vms/class-of-vm.ts';
import type { IsListed, MachinesByIdentity } from '../../vms/ownership.ts';
import type { Proved } from './brake.ts';
import type { Collection } from './collector.ts';
import type { ClassAccess, ClassList, Survey } from './survey.ts';

export interface UnitedVM
  extends Pick<Collection, 'vm' | 'isListed' | 'accessOf'>, Pick<Proved, 'access' | 'group' | 'releasedBy'> {
  /** All lists that show it. */
  readonly shownBy: readonly ClassList[];
}

/**
 * The VMs of all lists by provider id. One that a list of a whole cluster shows, or those of several classes, is reached by its own, and counts with
 * those of its class, also while that cannot be listed. VMs of which nothing tells the class, or of one that is gone, count with one another, and
 * are reached by the first by name.
 */
export function unite(
  { lists }: Pick<Survey, 'lists'>,
  identities: MachinesByIdentity,
  { classes, sets }: { readonly classes: Pick<Lister<MachineClass>, 'get'>; readonly sets: readonly MachineSet[] },
): ReadonlyMap<string, UnitedVM> {
  const waysOf = waysIn(lists);
  const classOf = classOfVM(identities, sets);
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
    const ofClass = shownBy.length === 1 && first.scope === 'class' ? first : undefined;
    const key = ofClass?.key ?? classOf(vm);
    const access = ofClass ?? shownBy.find((list) => list.key === key) ?? first;
    const ownClass = ofClass?.machineClass ?? classes.get(key ?? '');
    const group = ownClass === undefined ? `${access.key}, of unknown class` : keyOf(ownClass);
    return { vm, access, group, releasedBy: ownClass ?? access.machineClass, shownBy, ...waysOf(access) };
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
