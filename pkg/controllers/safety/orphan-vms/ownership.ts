import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Capabilities, ListedMachine } from '../../../driver/driver.ts';
import { isBeingCreated } from '../../machine/status.ts';

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

/** Whose a VM is: a Machine's, perhaps that of a Machine which is still being made, or nobody's. */
export type Ownership = 'owned' | 'in-creation' | 'none';

/** Machines by provider id and by name, as one list showed them. */
export interface MachinesByIdentity {
  readonly byProviderID: ReadonlyMap<string, Machine>;
  readonly byName: ReadonlyMap<string, Machine>;
}

/** Machines of one namespace. */
export function identify(machines: readonly Machine[]): MachinesByIdentity {
  const withID = machines.filter(({ spec }) => providerIDOf(spec) !== '');
  return {
    byProviderID: new Map(withID.map((machine) => [providerIDOf(machine.spec), machine])),
    byName: new Map(machines.map((machine) => [machine.metadata.name, machine])),
  };
}

/**
 * Whose a listed VM is:
 *
 * | Machines                                                       | ownership   |
 * |----------------------------------------------------------------|-------------|
 * | one has its provider id                                        | owned       |
 * | one of its name is still in creation                           | in-creation |
 * | one of its name has no provider id, and no other UID is tagged | owned       |
 * | one of its name has another provider id, or none has its name  | none        |
 */
export function ownershipOf(vm: ListedMachine, { byProviderID, byName }: MachinesByIdentity): Ownership {
  if (byProviderID.has(vm.providerID)) return 'owned';
  const namesake = byName.get(vm.machineName);
  if (namesake === undefined) return 'none';
  if (isBeingCreated(namesake)) return 'in-creation';
  if (providerIDOf(namesake.spec) !== '') return 'none';
  return vm.machineUID === undefined || vm.machineUID === namesake.metadata.uid ? 'owned' : 'none';
}

function providerIDOf(spec: Machine['spec'] | undefined): string {
  return spec?.providerID ?? '';
}
