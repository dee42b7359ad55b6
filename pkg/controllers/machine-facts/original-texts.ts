import type { LastOperation } from '../../apis/machine/v1alpha1/machine.ts';

/**
 * What the original says in `status.lastOperation.description` and nowhere else. Its dashboards, its autoscalers and itself read these
 * words, so they are ours too, and a Machine that it has begun with is taken over by them. What is ours alone is a code
 * (operation-codes.ts). The stages of a deletion are texts of this kind (deletion-stage.ts).
 */

/** A VM is being made, or has not joined as a Node yet. */
export const CREATING = 'Creating machine on cloud provider';
/** GetMachineStatus or CreateMachine failed. */
export const CREATE_FAILED = 'Cloud provider message - ';
/** InitializeMachine failed. */
export const INITIALIZE_FAILED = 'Provider error: ';

/** The call of a creation that has failed, where an operation says so: the code is that of the driver, whatever the call. */
export function failedCallOf(operation: LastOperation | undefined): 'create' | 'initialize' | undefined {
  const { description = '' } = operation ?? {};
  if (description.startsWith(CREATE_FAILED)) return 'create';
  return description.startsWith(INITIALIZE_FAILED) ? 'initialize' : undefined;
}

/** What the provider's words stand behind in the text form of an error. */
const MESSAGE = 'message = [';

/** The provider's words in the text form of an error. */
export function providerTextOf({ description = '' }: LastOperation): string {
  const begin = description.indexOf(MESSAGE);
  return begin >= 0 && description.endsWith(']') ? description.slice(begin + MESSAGE.length, -1) : description;
}

/** Drivers answer it when several VMs match one machine; a deletion has it in its text alone. The word itself may stand in any message. */
const SEVERAL_VMS = 'code = [OutOfRange]';

export function reportsSeveralVMs(operation: LastOperation | undefined): boolean {
  return operation?.description?.includes(SEVERAL_VMS) === true;
}
