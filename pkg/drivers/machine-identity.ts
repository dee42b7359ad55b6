import type { DriverCall, MachineRequest } from '../driver/driver.ts';
import { DriverError } from '../driver/error.ts';

export interface MachineIdentity {
  readonly cluster: string;
  readonly namespace: string;
  readonly name: string;
  /** Undefined for a VM that has no Machine. */
  readonly uid: string | undefined;
  readonly providerID: string | undefined;
}

export interface TaggedVM {
  readonly providerID: string;
  /** Empty on a VM that another tool made. */
  readonly cluster: string;
  /** Empty on a VM that another tool made, too. */
  readonly namespace: string;
  readonly className: string;
  readonly machineName: string;
  /** Undefined on a VM that another tool made. */
  readonly machineUID: string | undefined;
}

export function machineOf({ machine }: Pick<MachineRequest, 'machine'>, call: DriverCall): MachineIdentity {
  const { namespace = '', name, uid } = machine.metadata;
  const { providerID } = machine.spec;
  return { cluster: call.cluster, namespace, name, uid, providerID: providerID === '' ? undefined : providerID };
}

/**
 * Whether a VM is the one of a machine (rule 1 of the contract). A mark that the VM lacks contradicts nothing; another cluster, namespace or
 * UID does.
 *
 * | the machine's provider id | marks                                       | it is that machine's VM    |
 * |---------------------------|---------------------------------------------|----------------------------|
 * | is the VM's               | its UID                                     | yes, whatever its name     |
 * | is the VM's               | no UID                                      | if it has the machine's name, or none |
 * | is the VM's               | any, and the machine is a stub without UID  | yes                        |
 * | is another, or none       |                                             | if it has the machine's name; never for a stub, whose name may be another's by now |
 */
export function isVMOf(vm: TaggedVM, machine: MachineIdentity): boolean {
  const { uid, providerID } = machine;
  if (vm.cluster !== '' && vm.cluster !== machine.cluster) return false;
  if (vm.namespace !== '' && vm.namespace !== machine.namespace) return false;
  if (vm.machineUID !== undefined && uid !== undefined && vm.machineUID !== uid) return false;
  const isNamed = vm.machineName === machine.name;
  if (vm.providerID === providerID)
    return uid === undefined || vm.machineUID !== undefined || isNamed || vm.machineName === '';
  return isNamed && (uid !== undefined || providerID === undefined);
}

/** The one VM among those that match, undefined for none. Throws OutOfRange for several. */
export function onlyOne<T extends TaggedVM>(vms: readonly T[], machine: MachineIdentity): T | undefined {
  if (vms.length < 2) return vms[0];
  const ids = vms.map((vm) => vm.providerID).join(', ');
  throw new DriverError('OutOfRange', `several VMs match machine ${machine.namespace}/${machine.name}: ${ids}`);
}

/** What Kubernetes allows as a name: a DNS subdomain. */
const NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;
/** Room for a suffix where a name becomes the name of a file. */
const LONGEST_NAME = 240;

/** Whether a Machine can have that name; no other has a VM. */
export function isMachineName(name: string): boolean {
  return name.length <= LONGEST_NAME && NAME.test(name);
}

/**
 * Throws InvalidArgument unless the name is one that a Machine can have: anyone who reaches the driver's socket names the
 * machines, and names become paths and arguments of programs.
 */
export function requireMachineName({ name }: MachineIdentity): void {
  if (isMachineName(name)) return;
  const shown = JSON.stringify(name.slice(0, LONGEST_NAME));
  throw new DriverError(
    'InvalidArgument',
    `machine.metadata.name: ${shown} must be a DNS subdomain of at most ${LONGEST_NAME} characters`,
    { terminal: true },
  );
}

export function notFound(machine: MachineIdentity): DriverError {
  return new DriverError('NotFound', `machine ${machine.namespace}/${machine.name} has no VM`);
}
