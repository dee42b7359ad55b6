/** Beginnings of `status.lastOperation.description`, for people: decisions follow from codes (operation-codes.ts). */

/** CreateMachine goes on at the provider, which says what it waits for: no failure. */
export const BEING_CREATED = 'The VM is being created: ';
/** The same of InitializeMachine. */
export const BEING_INITIALIZED = 'The VM is being initialized: ';
/** The API server refused what a creation needs beforehand. */
export const PREPARATION_FAILED = 'Could not prepare the creation of the VM: ';
/** Class, driver or Secret are missing or wrong, and were from the beginning: no provider was ever asked for a VM. */
export const NO_VM_REQUESTED = 'No VM was asked for: ';
/** The API server refuses to record which VM the machine has. */
export const RECORD_REFUSED = 'The API server refuses to record ';
