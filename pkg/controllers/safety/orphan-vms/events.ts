import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import type { EventType } from '../../../events/correlator.ts';
import type { OwnerlessVM } from '../ownerless-vms.ts';

/** One Kubernetes Event about a MachineClass. */
export interface OrphanEvent {
  readonly object: MachineClass;
  readonly type: EventType;
  readonly reason: 'OrphanVMDeleted' | 'OrphanVMFound' | 'OrphanVMDeletionFailed';
  readonly message: string;
}

/** A VM that no Machine has was deleted; `proof` in words. */
export function deletedOrphan(object: MachineClass, vm: OwnerlessVM, proof: string): OrphanEvent {
  const message = `Deleted VM ${vm.providerID} of machine ${vm.machineName}, which no Machine has: ${proof}`;
  return { object, type: 'Normal', reason: 'OrphanVMDeleted', message };
}

/** The same would have been done. */
export function foundOrphan(object: MachineClass, vm: OwnerlessVM, proof: string): OrphanEvent {
  const message = `VM ${vm.providerID} of machine ${vm.machineName} is left alone only because of --machine-safety-orphan-vms-dry-run; no Machine has it: ${proof}`;
  return { object, type: 'Warning', reason: 'OrphanVMFound', message };
}

/** A VM that no Machine has could not be deleted; it is tried again. */
export function failedToDeleteOrphan(object: MachineClass, vm: OwnerlessVM, err: unknown): OrphanEvent {
  const why = err instanceof Error ? err.message : String(err);
  const message = `Could not delete VM ${vm.providerID} of machine ${vm.machineName}, which no Machine has: ${why}`;
  return { object, type: 'Warning', reason: 'OrphanVMDeletionFailed', message };
}
