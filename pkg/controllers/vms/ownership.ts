import { providerIDOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Capabilities, ListedMachine } from '../../driver/driver.ts';
import type { MachineIndex } from '../machine-facts/node-owner.ts';
import { endInOneDrawn, isOneVM, isSameVM } from '../../apis/machine/v1alpha1/same-vm.ts';
import { isBeingCreated } from '../machine-facts/status.ts';

/**
 * Whether a VM that was listed for a class in `namespace` may be of a Machine there at all. Drivers may list more than they were
 * asked for: a VM that carries another namespace is another manager's, and in a list of a whole cluster one that carries
 * none could be.
 */
export function isOfNamespace(
  { machineNamespace }: ListedMachine,
  namespace: string,
  listScope: Capabilities['listScope'],
): boolean {
  return machineNamespace === undefined ? listScope === 'class' : machineNamespace === namespace;
}

/**
 * Whether a listed VM may be that of a Machine in another namespace with the same target cluster: one that has recorded it, in whatever case, or,
 * of a VM that carries no namespace, one that has its name and has recorded none. A driver that does not know whose a VM is may state the namespace that asks, so
 * what only others have recorded is theirs in spite of it. Where each namespace has its own target, it never is.
 */
export function mayBeOfOther(vm: ListedMachine, namespace: string, machines: MachineIndex): boolean {
  const isElsewhere = ({ metadata }: Machine): boolean => metadata.namespace !== namespace;
  const named = machines.byIndex('name', vm.machineName);
  const inOtherCase = named.filter((one) => isOneVM(providerIDOf(one), vm.providerID));
  const recorded = [...machines.byIndex('providerID', vm.providerID), ...inOtherCase];
  if (vm.machineNamespace !== undefined) return recorded.length > 0 && recorded.every(isElsewhere);
  const isTagged = ({ metadata: { uid } }: Machine): boolean => vm.machineUID === undefined || vm.machineUID === uid;
  return (
    recorded.some(isElsewhere) ||
    named.some((one) => isElsewhere(one) && isTagged(one) && isSameVM(providerIDOf(one), vm.providerID) !== false)
  );
}

/** Whose a VM is: a Machine's, perhaps that of a Machine which is still being made or that knows it by another id, or nobody's. */
export type Ownership = 'owned' | 'in-creation' | 'other-id' | 'none';

/** Machines by provider id, by UID and by name, as one list showed them. */
export interface MachinesByIdentity {
  readonly byProviderID: ReadonlyMap<string, Machine>;
  readonly byUID: ReadonlyMap<string, Machine>;
  readonly byName: ReadonlyMap<string, Machine>;
  /** Provider ids that several Machines have: the record of all but one is wrong. */
  readonly shared: ReadonlySet<string>;
}

export function identify(machines: readonly Machine[]): MachinesByIdentity {
  const withID = machines.filter((machine) => providerIDOf(machine) !== '');
  const byProviderID = new Map(withID.map((machine) => [providerIDOf(machine), machine]));
  const shared = withID.filter((machine) => byProviderID.get(providerIDOf(machine)) !== machine);
  return {
    byProviderID,
    shared: new Set(shared.map(providerIDOf)),
    byUID: new Map(machines.map((machine) => [machine.metadata.uid, machine])),
    byName: new Map(machines.map((machine) => [machine.metadata.name, machine])),
  };
}

/** The Machines that a VM may have been made for, as far as it tells: the one whose UID it carries, and the one that has its name. */
export function namesakesOf(vm: ListedMachine, { byUID, byName }: MachinesByIdentity): readonly Machine[] {
  const tagged = vm.machineUID === undefined ? undefined : byUID.get(vm.machineUID);
  return [tagged, byName.get(vm.machineName)].filter((machine) => machine !== undefined);
}

/** Whether a provider id is in the list that shows a VM, or in that of the class of a namesake. */
export type IsListed = (providerID: string, namesake: Machine) => boolean;

/**
 * Whose a listed VM is. Its namesakes are the Machine whose UID it carries, whatever its name, and the one that has its name: it is nobody's if it
 * is neither's. "The list" is the one that shows it, or that of the namesake's class:
 *
 * | Machines                                                        | ownership   |
 * |-----------------------------------------------------------------|-------------|
 * | one has its provider id                                         | owned       |
 * | a namesake is still in creation, and has no provider id         | in-creation |
 * | a namesake has no provider id, and no other UID is tagged       | owned       |
 * | a namesake has a provider id that another Machine has too       | owned       |
 * | a namesake has this VM, its id written in another case          | other-id    |
 * | one has its UID, and an id that ends in the same drawn segment  | other-id    |
 * | a namesake has another VM, which is in the list too             | none        |
 * | a namesake has a provider id that is not in the list            | other-id    |
 * | it has none, or one without provider id, and of another UID     | none        |
 *
 * A list that does not show the VM of a Machine, but another one of its UID or name, more likely names that very VM otherwise than before.
 */
export function ownershipOf(vm: ListedMachine, identities: MachinesByIdentity, isListed: IsListed): Ownership {
  if (identities.byProviderID.has(vm.providerID)) return 'owned';
  const verdicts = namesakesOf(vm, identities).map((namesake) => judge(vm, namesake, identities, isListed));
  return verdicts.find((verdict) => verdict !== 'none') ?? 'none';
}

function judge(vm: ListedMachine, namesake: Machine, { shared }: MachinesByIdentity, isListed: IsListed): Ownership {
  const providerID = providerIDOf(namesake);
  if (providerID === '' && isBeingCreated(namesake)) return 'in-creation';
  if (shared.has(providerID)) return 'owned';
  if (providerID !== '' && isItsVM(vm, namesake, providerID)) return 'other-id';
  if (providerID !== '') return isListed(providerID, namesake) ? 'none' : 'other-id';
  return vm.machineUID === undefined || vm.machineUID === namesake.metadata.uid ? 'owned' : 'none';
}

/** Whether a listed VM is the one that `namesake`, or the provider for it, knows as `providerID`, in whatever form. */
export function isItsVM(vm: ListedMachine, { metadata: { name, uid } }: Machine, providerID: string): boolean {
  return (
    isOneVM(providerID, vm.providerID) ||
    (vm.machineUID === uid && endInOneDrawn(providerID, vm.providerID, [name, uid]))
  );
}
