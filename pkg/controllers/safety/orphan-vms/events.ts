import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import type { EventType } from '../../../events/correlator.ts';
import type { OwnerlessVM } from '../ownerless-vms.ts';
import { releaseCommand, releaseHint, type Annotated, type Release } from '../../vms/orphan-release.ts';

/** Every Event of the orphan loop about a MachineClass, and its type. docs/reference/events.md says more of each; a test compares. */
export const ORPHAN_EVENTS = {
  OrphanVMDeleted: 'Normal',
  OrphanVMFound: 'Warning',
  OrphanVMDeletionFailed: 'Warning',
  OrphanVMsHeld: 'Warning',
  ProviderIDMismatch: 'Warning',
  MachinesForgotten: 'Warning',
} as const satisfies Readonly<Record<string, EventType>>;

/** So many Machines are named in one Event. */
const MAX_NAMED = 20;

/** One Kubernetes Event about a MachineClass. */
export interface OrphanEvent {
  readonly object: MachineClass;
  readonly type: EventType;
  readonly reason: keyof typeof ORPHAN_EVENTS;
  readonly message: string;
}

/** A VM that no Machine has was deleted; `proof` in words. */
export function deletedOrphan(object: MachineClass, vm: OwnerlessVM, proof: string): OrphanEvent {
  const message = `Deleted VM ${vm.providerID} of machine ${vm.machineName}, which no Machine owns: ${proof}`;
  return { object, type: 'Normal', reason: 'OrphanVMDeleted', message };
}

/** The same would have been done. */
export function foundOrphan(object: MachineClass, vm: OwnerlessVM, proof: string): OrphanEvent {
  const message = `VM ${vm.providerID} of machine ${vm.machineName} is left alone only because of --machine-safety-orphan-vms-dry-run; no Machine owns it: ${proof}`;
  return { object, type: 'Warning', reason: 'OrphanVMFound', message };
}

/** A VM that no Machine has could not be deleted; it is tried again. */
export function failedToDeleteOrphan(object: MachineClass, vm: OwnerlessVM, err: unknown): OrphanEvent {
  const why = err instanceof Error ? err.message : String(err);
  const message = `Could not delete VM ${vm.providerID} of machine ${vm.machineName}, which no Machine owns: ${why}`;
  return { object, type: 'Warning', reason: 'OrphanVMDeletionFailed', message };
}

/** All that a Machine had which was let go by force is gone. */
export function cleanedUp(object: MachineClass, machine: string): OrphanEvent {
  const message = `Deleted what was left of Machine ${machine}, which was let go by force.`;
  return { object, type: 'Normal', reason: 'OrphanVMDeleted', message };
}

/** It could not be deleted; it is tried again. */
export function failedToCleanUp(object: MachineClass, machine: string, err: unknown): OrphanEvent {
  const why = err instanceof Error ? err.message : String(err);
  const message = `Could not delete what is left of Machine ${machine}, which was let go by force: ${why}`;
  return { object, type: 'Warning', reason: 'OrphanVMDeletionFailed', message };
}

/** Why VMs without a Machine are not deleted; forgotten: a restore of the control cluster has forgotten the Machines of some of them. */
export type HoldReason = 'too-many' | 'forgotten';

const HOLD_REASONS: Readonly<Record<HoldReason, string>> = {
  'too-many':
    'More than 10 % of the VMs of this class, and more than 3, have no Machine; none of them is deleted. The log of the machine controller names them. ',
  forgotten:
    'VMs of this class have no Machine because the control cluster was set back to an earlier state; they are kept. The log of the machine controller names them. To keep one for good, make its Machine again. ',
};

/** VMs have no Machine, and are not deleted. Without numbers, so that equal ones are one Event. */
export function heldOrphans(object: MachineClass, why: HoldReason, release: Exclude<Release, 'given'>): OrphanEvent {
  const message = `${HOLD_REASONS[why]}${releaseHint(release, annotated(object))}`;
  return { object, type: 'Warning', reason: 'OrphanVMsHeld', message };
}

/** The driver lists VMs of Machines, but under ids that the Machines do not know. */
export function mismatchedIDs(object: MachineClass): OrphanEvent {
  const message =
    'The driver lists VMs with the names of Machines of this class under provider ids other than spec.providerID, and not the VMs with those ids. They are left alone. Check the version and the configuration of the driver.';
  return { object, type: 'Warning', reason: 'ProviderIDMismatch', message };
}

/** The control cluster was restored from a backup that does not have these Machines; their VMs have no Machine now. */
export function forgotMachines(object: MachineClass, names: readonly string[]): OrphanEvent {
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : '';
  const message = `The control cluster was set back to an earlier state, which does not have ${names.length} Machines: ${names.slice(0, MAX_NAMED).join(', ')}${more}. Their VMs have no Machine now and are kept. To keep one for good, make its Machine again; to have the others deleted: ${releaseCommand(annotated(object))}`;
  return { object, type: 'Warning', reason: 'MachinesForgotten', message };
}

function annotated({ metadata }: MachineClass): Annotated {
  return { kind: 'machineclass', metadata };
}
