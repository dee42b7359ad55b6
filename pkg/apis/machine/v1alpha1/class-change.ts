import { classNameOf, phaseOf, providerIDOf } from './defaults.ts';
import type { Machine } from './machine.ts';

/** Codes of drivers with which the provider refused to create a VM. */
export const REFUSED_CREATION_CODES = [
  'InvalidArgument',
  'NotFound',
  'AlreadyExists',
  'PermissionDenied',
  'ResourceExhausted',
  'FailedPrecondition',
  'Unauthenticated',
] as const;

/**
 * What `status.lastOperation.errorCode` says of a failed creation that has made nothing. Without a code the creation waits for its class, or
 * for what that names.
 */
export const NO_VM_CODES = [
  '',
  'NeverAsked',
  'FinalizerRefused',
  'PreparationFailed',
  ...REFUSED_CREATION_CODES,
] as const;

/**
 * Whether a Machine may be given another MachineClass, as the rule of our CRDs says: it names none, or its creation has failed and nothing was
 * made. In any other state a VM may exist that only its own class finds.
 */
export function mayChangeClass(machine: Machine): boolean {
  if (classNameOf(machine) === '') return true;
  if (providerIDOf(machine) !== '' || !['', 'CrashLoopBackOff'].includes(phaseOf(machine))) return false;
  const { type, state, errorCode = '' } = machine.status?.lastOperation ?? {};
  return type === 'Create' && state === 'Failed' && NO_VM_CODES.some((code) => code === errorCode);
}
