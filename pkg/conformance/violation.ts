import { DRIVER_CODES } from '../driver/error.ts';
import type { Failure } from '../driver/grpc/gen/machine/driver/v1/driver.ts';

/** A driver did what the contract does not allow. The message says what it did. */
export class Violation extends Error {
  override readonly name = 'Violation';
}

/** Name of the code of a failure; its number where that is none of the contract's. */
export function codeOf(failure: Pick<Failure, 'code'>): string {
  return DRIVER_CODES[failure.code] ?? String(failure.code);
}

/** What was answered, for people: `success`, or the code with the driver's words. */
export function answerText(failure: Failure | undefined): string {
  if (failure === undefined) return 'success';
  return failure.message === '' ? codeOf(failure) : `${codeOf(failure)} (${failure.message})`;
}
