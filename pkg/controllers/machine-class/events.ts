import type { ObjectEvent } from '../replicas/events.ts';
import { MACHINE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import { namedUpTo } from '../../apis/short-text.ts';
import { forcedRemovalsOf, type ForcedRemoval } from '../vms/forced-removals.ts';

/** So many Machines are named; more would not fit into anybody's head. */
const MAX_NAMED = 5;

/** The class is being deleted, and stays for as long as these Machines are there. */
export function inUse(object: MachineClass, machines: readonly string[]): ObjectEvent<MachineClass> {
  const named = namedUpTo(MAX_NAMED, machines, ', and');
  const what = machines.length === 1 ? 'Machine' : `${machines.length} Machines:`;
  const message = `Deletion blocked: in use by ${what} ${named}. Their VMs cannot be deleted without it`;
  return { object, type: 'Warning', reason: 'InUse', message };
}

/** The class is let go although VMs that nobody owns may be left at the provider. */
export function releasedUnproven(object: MachineClass, waitedMinutes: number): ObjectEvent<MachineClass> {
  const message =
    `Released after ${waitedMinutes} minutes although the driver could not list VMs, so leftover VMs cannot be ruled out: ` +
    'check the provider for VMs of this class, and delete them';
  return { object, type: 'Warning', reason: 'VMsMayBeLeft', message };
}

/** The same although lists are empty: Machines have vanished before their VMs, and no look for VMs without a Machine has confirmed the lists. */
export function releasedUncounted(object: MachineClass, waitedMinutes: number): ObjectEvent<MachineClass> {
  const message =
    `Released after ${waitedMinutes} minutes although Machines of this class vanished before the deletion of their VMs was confirmed, and lists without VMs did not count because ` +
    'a cluster could not be reached, or this class could not be listed by the check for VMs without a Machine: check the provider for VMs of this class, and delete them';
  return { object, type: 'Warning', reason: 'VMsMayBeLeft', message };
}

/** The class is let go although VMs that nobody owns were listed before it was edited, perhaps in another account. */
export function releasedAfterEdit(object: MachineClass): ObjectEvent<MachineClass> {
  const message =
    'Released because no VMs are listed any more, but VMs without a Machine were listed before this class was edited: ' +
    'if it had other credentials, or another region, check there for VMs of this class, and delete them';
  return { object, type: 'Warning', reason: 'VMsMayBeLeft', message };
}

const COUNTING =
  'A list does not count while the driver does not list the VMs of Machines, while this class, or that of other VMs in the list, cannot be listed, or while a cluster cannot be reached. ';
const BY_HAND = `If nothing can list them any more, check that they are gone, and remove finalizer ${MACHINE_FINALIZER}`;

/** The class is being deleted, and stays because the provider has VMs that nobody owns: without it they would be forgotten. */
export function leftVMs(object: MachineClass): ObjectEvent<MachineClass> {
  const message =
    'Deletion blocked: VMs without a Machine that are, or may be, of this class were listed, and no two later lists are without them. Why they are not deleted is in Event OrphanVMsHeld of this class or, ' +
    `if their class is unknown, of the first MachineClass by name that lists them; their names are in the log of the machine controller. Correct the cause, or delete them at the provider. ${COUNTING}${BY_HAND}`;
  return { object, type: 'Warning', reason: 'VMsLeft', message };
}

/** The class is being deleted, and stays because Machines have vanished before their VMs, and no two lists count that show none. */
export function vanishedMachines(object: MachineClass): ObjectEvent<MachineClass> {
  const message =
    'Deletion blocked: Machines of this class vanished before the deletion of their VMs was confirmed, and no two lists have been without VMs since. ' +
    `${COUNTING}${BY_HAND}`;
  return { object, type: 'Warning', reason: 'VMsLeft', message };
}

/** The class is being deleted, and stays because VMs may be left of Machines that were let go by force. */
export function unconfirmed(object: MachineClass): ObjectEvent<MachineClass> {
  const removals = forcedRemovalsOf(object);
  const named = namedUpTo(MAX_NAMED, removals.map(describe), ', and');
  return {
    object,
    type: 'Warning',
    reason: 'ForcedRemovalUnconfirmed',
    message:
      `Deletion blocked: no VM list has confirmed yet that the VMs of Machines that were deleted by force are gone: ${named}. ` +
      `If you have deleted a VM manually, remove its annotation, such as ${removals[0]?.key}`,
  };
}

function describe({ machineUID, machine, providerID }: ForcedRemoval): string {
  const vm = providerID === undefined ? '' : ` (VM ${providerID})`;
  return `${machine ?? `of UID ${machineUID}`}${vm}`;
}
