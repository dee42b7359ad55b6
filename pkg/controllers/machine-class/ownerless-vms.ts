import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import { providerIDOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { ListedMachine } from '../../driver/driver.ts';
import type { Drivers } from '../../driver/drivers.ts';
import type { Reader } from '../../kube/client.ts';
import { machines } from '../../kube/resource.ts';
import { forcedRemovalsOf, mayBeLeftBy } from '../vms/forced-removals.ts';
import { isOfNamespace } from '../vms/ownership.ts';
import type { SecretContents } from '../class-secrets/secret-contents.ts';
import type { VMsLeft } from './finalizer-decision.ts';

/** What is needed to look for VMs that nobody owns. */
export interface OwnerlessDeps {
  readonly drivers: Drivers;
  readonly secrets: Pick<SecretContents, 'of'>;
  readonly reader: Reader;
  readonly namespace: string;
  /** Whether a Node shows a VM that no Machine has, and is about to be deleted because that is gone. */
  readonly hasNodeLeft: (providerID: string) => boolean;
  /** Whether this process deletes what Machines that were let go by force have left, and takes the note of each away then. */
  readonly cleansUp: boolean;
}

/**
 * Asks the driver for its VMs, and after that, live, which Machines exist: a VM made in between belongs to a Machine that is
 * seen. The VM of a Machine that was let go by force is nobody's, although another Machine has its name by now. With drivers that list the whole cluster a VM of another class counts too, which only holds the class a while longer.
 * Throws DriverError and ApiError.
 */
export async function lookForOwnerlessVMs(
  { drivers, secrets, reader, namespace, hasNodeLeft, cleansUp }: OwnerlessDeps,
  machineClass: MachineClass,
  signal: AbortSignal,
): Promise<VMsLeft> {
  const driver = drivers.resolve(machineClass);
  if (driver === undefined) return 'unknown';
  const { methods, listScope } = await driver.capabilities(signal);
  if (!methods.has('ListMachines')) return 'unsupported';
  const { data } = await secrets.of(machineClass, signal);
  const listed = await driver.list({ machineClass, secretData: data }, signal);
  const vms = listed.filter((vm) => isOfNamespace(vm, namespace, listScope));
  const removals = forcedRemovalsOf(machineClass);
  // No list shows ports and disks without a VM.
  if (cleansUp && removals.some(({ machine }) => machine !== undefined)) return 'some';
  // Its note is what the Node is found by, whoever goes on.
  if (removals.some(({ providerID }) => providerID !== undefined && hasNodeLeft(providerID))) return 'some';
  if (vms.length === 0) return 'none';
  const { items } = await reader.list(machines, { namespace, signal });
  const names = new Set(items.map(({ metadata }) => metadata.name));
  const providerIDs = new Set(items.map(providerIDOf));
  const isOwned = (vm: ListedMachine): boolean =>
    providerIDs.has(vm.providerID) || (names.has(vm.machineName) && !removals.some((one) => mayBeLeftBy(vm, one)));
  return vms.every(isOwned) ? 'none' : 'some';
}
