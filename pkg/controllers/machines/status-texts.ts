import type { LastOperation } from '../../apis/machine/v1alpha1/machine.ts';

/**
 * Beginnings of `status.lastOperation.description` by which a failed creation is told apart. The original's dashboards and
 * autoscalers read the first two, so they are its words.
 */

/** GetMachineStatus or CreateMachine failed. */
export const CREATE_FAILED = 'Cloud provider message - ';
/** InitializeMachine failed. */
export const INITIALIZE_FAILED = 'Provider error: ';
/** CreateMachine goes on at the provider, which says what it waits for: no failure. */
export const BEING_CREATED = 'The VM is being created: ';
/** The same of InitializeMachine. */
export const BEING_INITIALIZED = 'The VM is being initialized: ';
/** Whether an operation says that the provider goes on with the VM. */
export function isUnderWay(operation: LastOperation | undefined): boolean {
  const { type, description = '' } = operation ?? {};
  return type === 'Create' && (description.startsWith(BEING_CREATED) || description.startsWith(BEING_INITIALIZED));
}

/** The API server refused what a creation needs beforehand. */
export const PREPARATION_FAILED = 'Could not prepare the creation of the VM: ';
/** Class, driver or Secret are missing or wrong, and were from the beginning: no provider was ever asked for a VM. */
export const NO_VM_REQUESTED = 'No VM was asked for: ';
/** The API server refuses to record which VM the machine has. */
export const RECORD_REFUSED = 'The API server refuses to record ';
