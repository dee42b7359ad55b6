import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import { forcedRemovalsOf, type ForcedRemoval } from '../vms/forced-removals.ts';

/** One Kubernetes Event about a MachineClass. */
export interface MachineClassEvent {
  readonly object: MachineClass;
  readonly type: 'Warning';
  readonly reason: string;
  readonly message: string;
}

/** So many Machines are named; more would not fit into anybody's head. */
const MAX_NAMED = 5;

/** The class is being deleted, and stays for as long as these Machines are there. */
export function inUse(object: MachineClass, machines: readonly string[]): MachineClassEvent {
  const named = machines.slice(0, MAX_NAMED).join(', ');
  const more = machines.length > MAX_NAMED ? `, and ${machines.length - MAX_NAMED} more` : '';
  const what = machines.length === 1 ? 'Machine' : `${machines.length} Machines:`;
  return {
    object,
    type: 'Warning',
    reason: 'InUse',
    message: `Deletion waits: in use by ${what} ${named}${more}. Their VMs could not be deleted without it`,
  };
}

/** The class is let go although VMs that nobody owns may be left at the provider. */
export function releasedUnproven(object: MachineClass, isKnown: boolean, waitedMinutes: number): MachineClassEvent {
  const state = isKnown
    ? 'its last VM list still shows VMs without a Machine'
    : 'no VM list could be had to show that no VM is left';
  return {
    object,
    type: 'Warning',
    reason: 'VMsMayBeLeft',
    message: `Released after ${waitedMinutes} minutes although ${state}: look for VMs of this class at the provider and delete them`,
  };
}

/** The class is being deleted, and stays because VMs may be left of Machines that were let go by force. */
export function unconfirmed(object: MachineClass): MachineClassEvent {
  const removals = forcedRemovalsOf(object);
  const named = removals.slice(0, MAX_NAMED).map(describe).join(', ');
  const more = removals.length > MAX_NAMED ? `, and ${removals.length - MAX_NAMED} more` : '';
  return {
    object,
    type: 'Warning',
    reason: 'ForcedRemovalUnconfirmed',
    message:
      `Deletion waits: no VM list has shown yet that the VMs of Machines are gone that were let go by force: ${named}${more}. ` +
      `If you have deleted a VM yourself, remove its annotation, such as ${removals[0]?.key}`,
  };
}

function describe({ machineUID, machine, providerID }: ForcedRemoval): string {
  const vm = providerID === undefined ? '' : ` (VM ${providerID})`;
  return `${machine ?? `of UID ${machineUID}`}${vm}`;
}
