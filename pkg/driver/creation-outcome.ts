import { REFUSED_CREATION_CODES } from '../apis/machine/v1alpha1/class-change.ts';
import { DriverError, type DriverCode } from './error.ts';

/** The request itself was refused. In a record the last two say less: several VMs were found, or the driver may not be able to look for one. */
const REFUSED: ReadonlySet<DriverCode> = new Set([...REFUSED_CREATION_CODES, 'OutOfRange', 'Unimplemented']);

/**
 * Whether a CreateMachine that ended with this may have made a VM that shows only later. What the driver says of the time in which the provider
 * was to answer, of its own faults and of those of the provider, leaves that open as much as no answer does: some have made the VM by then.
 *
 * | the call                            | a VM of it   |
 * |-------------------------------------|--------------|
 * | was not sent                        | cannot come  |
 * | was refused: the codes above        | cannot come  |
 * | failed with any other code          | may come     |
 * | was not answered, whatever its code | may come     |
 */
export function mayHaveMade(error: unknown): boolean {
  return error instanceof DriverError && (error.unanswered || !REFUSED.has(error.code));
}
