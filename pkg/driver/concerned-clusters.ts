import { hasForceDeletionLabel } from '../apis/machine/v1alpha1/defaults.ts';
import { CONTROL, type Cluster } from '../kube/gate/gate.ts';
import type { MachineOrStub } from './driver.ts';

/**
 * The clusters that must be alive before a driver mutation for this machine: the control cluster and its target. A machine that
 * is being deleted by force does not wait for its target, which may be hibernated or gone for good.
 */
export function concernedClusters(machine: MachineOrStub, target: Cluster | undefined): readonly Cluster[] {
  return target === undefined || isDeletedByForce(machine) ? [CONTROL] : [CONTROL, target];
}

/** Whether this machine is being deleted without waiting for anything. False for none. */
export function isDeletedByForce(machine: MachineOrStub | undefined): boolean {
  if (machine === undefined) return false;
  const { metadata } = machine;
  if (!('deletionTimestamp' in metadata) || metadata.deletionTimestamp === undefined) return false;
  return hasForceDeletionLabel({ metadata });
}
