import type { ObjectEvent } from '../../replicas/events.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import type { EventType } from '../../../kube/events/correlator.ts';
import type { OwnerlessVM } from '../ownerless-vms.ts';
import { releaseCommand, releaseHint, type Annotated, type Release } from '../../vms/orphan-release.ts';
import { namedUpTo } from '../../../apis/short-text.ts';
import type { ListedMachine } from '../../../driver/driver.ts';

/** Every Event of the orphan loop about a MachineClass, and its type; commented as MACHINE_EVENTS. */
export const ORPHAN_EVENTS = {
  /** a VM without a Machine was deleted; the message contains the proof */
  OrphanVMDeleted: 'Normal',
  /**
   * a VM without a Machine was not deleted because of `--machine-safety-orphan-vms-dry-run`, or because GetMachineStatus does not confirm that it
   * is a second VM of its Machine; the message says which → delete it, or turn the flag off
   */
  OrphanVMFound: 'Warning',
  /**
   * the driver could not delete a VM without a Machine, or has listed it for 10 minutes although it reported success, or was not asked to delete [what a forced removal
   * left](../operations/deletion.md#what-a-forced-removal-leaves-behind), because another Machine has the name; retried → see
   * the code in [error codes](error-codes.md), or the message
   */
  OrphanVMDeletionFailed: 'Warning',
  /**
   * VMs of the class have no Machine, but are not deleted: they are, or those of all classes with the same credentials or the same driver, more than 10 % and more than 3, or were when they were held first, or a restored backup does not contain their
   * Machines, or the driver does not list the VMs of other Machines; repeated at each check → [held
   * VMs](../runbooks/orphan-vms.md#what-to-do)
   */
  OrphanVMsHeld: 'Warning',
  /**
   * the driver lists VMs of Machines under provider IDs other than `spec.providerID`, such as the one in the message; they are not touched; repeated at each check → check the
   * version and the configuration of the driver; delete a second VM of a Machine at the provider
   */
  ProviderIDMismatch: 'Warning',
  /**
   * the control cluster was restored from a backup that does not contain these Machines, although their VMs exist; the VMs are kept →
   * [restoring](../operations/outages.md#restoring-the-control-cluster-from-a-backup)
   */
  MachinesForgotten: 'Warning',
  /**
   * the driver does not list VMs of Machines whose Nodes are Ready; until it does, no Machine of the same account becomes Failed because of a
   * missing VM, and no VM without a Machine is deleted; repeated at each check → check the credentials, the version and the configuration of the driver; see [machines without a
   * VM](../concepts/safety.md#machines-without-a-vm)
   */
  ReadyNodesWithoutVM: 'Warning',
  /**
   * more than 10 % of the VMs of an account, and more than 3, are missing at the provider at once, and there is no target cluster that could confirm
   * it; the Machines are kept; repeated at each check → check the credentials, the version and the configuration of the driver; delete the Machines
   * if their VMs are gone; see [machines without a VM](../concepts/safety.md#machines-without-a-vm)
   */
  ManyVMsMissing: 'Warning',
} as const satisfies Readonly<Record<string, EventType>>;

const MAX_NAMED = 20;

export type OrphanEvent = ObjectEvent<MachineClass> & { readonly reason: keyof typeof ORPHAN_EVENTS };

/** A VM without a Machine was deleted; `proof` is text. */
export function deletedOrphan(object: MachineClass, vm: OwnerlessVM, proof: string): OrphanEvent {
  const message = `Deleted VM ${vm.providerID} of machine ${vm.machineName}, which has no Machine: ${proof}`;
  return { object, type: 'Normal', reason: 'OrphanVMDeleted', message };
}

/** A VM without a Machine was kept because of the dry run. */
export function foundOrphan(object: MachineClass, vm: OwnerlessVM, proof: string): OrphanEvent {
  const message = `VM ${vm.providerID} of machine ${vm.machineName} has no Machine, but is kept because of --machine-safety-orphan-vms-dry-run: ${proof}`;
  return { object, type: 'Warning', reason: 'OrphanVMFound', message };
}

/** A VM may be a second one of its Machine, but only the list says so. */
export function keptTwin(object: MachineClass, vm: OwnerlessVM, verdict: 'of-machine' | 'unknown'): OrphanEvent {
  const why = verdict === 'of-machine' ? 'returns this VM' : 'does not return another VM';
  const message =
    `VM ${vm.providerID} has the name or the UID of a Machine with another VM (${vm.machineName}), but is kept because GetMachineStatus ${why}. ` +
    'Check the provider: if it is a second VM, delete it.';
  return { object, type: 'Warning', reason: 'OrphanVMFound', message };
}

export function failedToDeleteOrphan(object: MachineClass, vm: OwnerlessVM, err: unknown): OrphanEvent {
  const why = err instanceof Error ? err.message : String(err);
  const message = `Could not delete VM ${vm.providerID} of machine ${vm.machineName}, which has no Machine: ${why}`;
  return { object, type: 'Warning', reason: 'OrphanVMDeletionFailed', message };
}

/** The remaining resources of a Machine that was removed by force were deleted. */
export function cleanedUp(object: MachineClass, machine: string): OrphanEvent {
  const message = `Deleted the remaining resources of Machine ${machine}, which was removed by force.`;
  return { object, type: 'Normal', reason: 'OrphanVMDeleted', message };
}

export function failedToCleanUp(object: MachineClass, machine: string, err: unknown): OrphanEvent {
  const why = err instanceof Error ? err.message : String(err);
  const message = `Could not delete the remaining resources of Machine ${machine}, which was removed by force: ${why}`;
  return { object, type: 'Warning', reason: 'OrphanVMDeletionFailed', message };
}

/** What a forced removal left is kept, because its driver could take the VM of another Machine of the name for it. */
export function keptForNamesake(
  object: MachineClass,
  { machine, key }: { readonly machine: string; readonly key: string },
): OrphanEvent {
  const why =
    `another Machine has this name (kubectl get machines -A --field-selector metadata.name=${machine}), and no list shows its VM with its UID, ` +
    `so that VM could be deleted. This is retried until the other Machine is deleted; or delete the resources manually and remove annotation ${key}.`;
  return failedToCleanUp(object, machine, why);
}

/**
 * Why VMs without a Machine are not deleted. held-before: they were too many once; forgotten: a restore of the control cluster has forgotten the Machines of some of them; doubted: nothing is
 * believed that their provider says about VMs.
 */
export type HoldReason =
  | 'too-many'
  | 'too-many-together'
  | 'of-unknown-class'
  | 'held-before'
  | 'forgotten'
  | 'doubted';

const NAMES = 'For their names, see the log of the machine controller. ';

/** In this order: a MachineSet deletes what is too much, and a driver does not find the VM of another UID. */
const TO_KEEP =
  'To keep a VM permanently, stop the manager, raise spec.replicas of its MachineDeployment and MachineSet, create its Machine again, and set the UID in the tags of the VM to that of the new Machine.';

const HOLD_REASONS: Readonly<Record<HoldReason, string>> = {
  'too-many': `More than 10 % of the VMs of this class, and more than 3, have no Machine; not deleting any of them. ${NAMES}`,
  'too-many-together':
    'More than 10 % of the VMs of all classes with the same credentials, or of the same driver, and more than 3, have no Machine, or had none and were deleted in the last 24 hours while a class could not be listed; ' +
    `not deleting those of this class. ${NAMES}`,
  'held-before': `VMs of this class have no Machine, and there were too many at once before; the remaining ones are kept until they have a Machine. ${NAMES}`,
  'of-unknown-class': `Too many VMs in the lists of the whole cluster, whose class is unknown or does not exist, have no Machine; not deleting any of them. ${NAMES}The annotation releases held VMs of this class, too. `,
  forgotten: `VMs of this class have no Machine because the control cluster was restored to an earlier state; they are kept. ${NAMES}${TO_KEEP} `,
  doubted:
    `VMs of this class have no Machine, but the driver does not list the VMs of Machines with the same credentials or, if its lists are of the whole cluster, of other Machines, which may be of a class that cannot be listed; until it does, they are kept. ${NAMES}` +
    'Check the credentials of all classes, the configuration and the version of the driver. If the VMs of those Machines are gone, delete the Machines. VMs that are not needed can be deleted at the provider.',
};

/** VMs without a Machine are not deleted. The message has no numbers, so that equal Events are counted as one. */
export function heldOrphans(object: MachineClass, why: HoldReason, release: Release): OrphanEvent {
  // What is doubted nobody can release: a permission was given for what a list had shown, and this one may show the wrong VMs.
  const hint = why === 'doubted' || release === 'given' ? '' : releaseHint(release, annotated(object));
  return { object, type: 'Warning', reason: 'OrphanVMsHeld', message: `${HOLD_REASONS[why]}${hint}` };
}

/** The driver lists VMs of Machines, such as `vm`, but under IDs that no Machine has recorded. */
export function mismatchedIDs(object: MachineClass, vm: ListedMachine): OrphanEvent {
  const message =
    'The driver lists VMs with the names or UIDs of Machines under provider IDs other than spec.providerID, and does not list the VMs with those IDs, or both IDs may be of one VM, such as ' +
    `${vm.providerID} of Machine ${vm.machineName}. They are not touched. Check the version and the configuration of the driver. If a Machine has two VMs, delete the one without its spec.providerID at the provider.`;
  return { object, type: 'Warning', reason: 'ProviderIDMismatch', message };
}

/** The driver does not list VMs of healthy Machines, so it is not trusted about other VMs of the account either. */
export function unlistedVMs(object: MachineClass): OrphanEvent {
  const message =
    'The driver does not list the VMs of Machines of this class whose Nodes are Ready. Until it does, Machines with the same credentials do not become Failed because of a missing VM, and VMs without a Machine are kept. Check the credentials, the configuration and the version of the driver.';
  return { object, type: 'Warning', reason: 'ReadyNodesWithoutVM', message };
}

/** Without Nodes only the provider can report that VMs are gone, and so many at once are not plausible. */
export function manyMissingVMs(object: MachineClass): OrphanEvent {
  const message =
    'The driver does not find the VMs of many Machines of this class at once, and without a target cluster nothing else can confirm that these VMs are gone: the Machines are kept. Check the credentials, the configuration and the version of the driver. If the VMs are gone, delete the Machines.';
  return { object, type: 'Warning', reason: 'ManyVMsMissing', message };
}

/** The control cluster was restored from a backup that does not contain these Machines; their VMs have no Machine now. */
export function forgotMachines(object: MachineClass, names: readonly string[]): OrphanEvent {
  // The names last: they may be cut off.
  const message = `The control cluster was restored to an earlier state that does not contain ${names.length} Machines. Their VMs have no Machine now and are kept. ${TO_KEEP} To delete the others: ${releaseCommand(annotated(object))}. The Machines: ${namedUpTo(MAX_NAMED, names)}`;
  return { object, type: 'Warning', reason: 'MachinesForgotten', message };
}

function annotated({ metadata }: MachineClass): Annotated {
  return { kind: 'machineclass', metadata };
}
