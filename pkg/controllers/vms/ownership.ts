import { providerIDOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Capabilities, ListedMachine } from '../../driver/driver.ts';
import type { MachineIndex } from '../machine-facts/node-owner.ts';
import { isSameVM } from '../../apis/machine/v1alpha1/same-vm.ts';
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
 * Whether a listed VM that carries no namespace may be that of a Machine in another one with the same target cluster: one that has recorded it, or
 * that has its name and has recorded none. Where each namespace has its own target, it never is.
 */
export function mayBeOfOther(vm: ListedMachine, namespace: string, machines: MachineIndex): boolean {
  if (vm.machineNamespace !== undefined) return false;
  const isElsewhere = ({ metadata }: Machine): boolean => metadata.namespace !== namespace;
  const isTagged = ({ metadata: { uid } }: Machine): boolean => vm.machineUID === undefined || vm.machineUID === uid;
  return (
    machines.byIndex('providerID', vm.providerID).some(isElsewhere) ||
    machines
      .byIndex('name', vm.machineName)
      .some((one) => isElsewhere(one) && isTagged(one) && isSameVM(providerIDOf(one), vm.providerID) !== false)
  );
}

/** Whose a VM is: a Machine's, perhaps that of a Machine which is still being made or that knows it by another id, or nobody's. */
export type Ownership = 'owned' | 'in-creation' | 'other-id' | 'none';

/** Machines by provider id and by name, as one list showed them. */
export interface MachinesByIdentity {
  readonly byProviderID: ReadonlyMap<string, Machine>;
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
    byName: new Map(machines.map((machine) => [machine.metadata.name, machine])),
  };
}

/** Whether a provider id is in the list that shows a VM, or in that of the class of the Machine that has the VM's name. */
export type IsListed = (providerID: string, namesake: Machine) => boolean;

/**
 * Whose a listed VM is; "the list" is the one that shows it, or that of its namesake's class:
 *
 * | Machines                                                        | ownership   |
 * |-----------------------------------------------------------------|-------------|
 * | one has its provider id                                         | owned       |
 * | one of its name is still in creation                            | in-creation |
 * | one of its name has no provider id, and no other UID is tagged  | owned       |
 * | one of its name has a provider id that another Machine has too  | owned       |
 * | one of its name has another VM, which is in the list too        | none        |
 * | one of its name has a provider id that is not in the list       | other-id    |
 * | none has its name, or the one without provider id another UID   | none        |
 *
 * A list that does not show the VM of a Machine, but another one of its name, more likely names that very VM otherwise than before.
 */
export function ownershipOf(
  vm: ListedMachine,
  { byProviderID, byName, shared }: MachinesByIdentity,
  isListed: IsListed,
): Ownership {
  if (byProviderID.has(vm.providerID)) return 'owned';
  const namesake = byName.get(vm.machineName);
  if (namesake === undefined) return 'none';
  if (isBeingCreated(namesake)) return 'in-creation';
  const providerID = providerIDOf(namesake);
  if (shared.has(providerID)) return 'owned';
  if (providerID !== '') return isListed(providerID, namesake) ? 'none' : 'other-id';
  return vm.machineUID === undefined || vm.machineUID === namesake.metadata.uid ? 'owned' : 'none';
}
