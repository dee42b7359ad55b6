/**
 * Beginnings of `status.lastOperation.description` by which a failed creation is told apart. The original's dashboards and
 * autoscalers read the first two, so they are its words.
 */

/** GetMachineStatus or CreateMachine failed. */
export const CREATE_FAILED = 'Cloud provider message - ';
/** InitializeMachine failed. */
export const INITIALIZE_FAILED = 'Provider error: ';
/** The API server refused what a creation needs beforehand. */
export const PREPARATION_FAILED = 'Could not prepare the creation of the VM: ';
/** Class, driver or Secret are missing or wrong, and were from the beginning: no provider was ever asked for a VM. */
export const NEVER_ASKED = 'No VM was asked for: ';
/** The API server refuses to record which VM the machine has. */
export const RECORD_REFUSED = 'The API server refuses to record ';
