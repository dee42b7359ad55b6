import { DRIVER_CODES } from '../error.ts';
import type { Failure } from '../grpc/gen/machine/driver/v1/driver.ts';

/** A driver did what the contract does not allow. The message says what came and what was expected. */
export class Violation extends Error {
  override readonly name: string = 'Violation';

  constructor(came: string, expected: string, options?: ErrorOptions) {
    super(`${came}; expected ${expected}`, options);
  }
}

/** A call was answered in another way than it should have been. */
export class UnexpectedAnswer extends Violation {
  readonly failure: Failure | undefined;

  constructor(call: string, failure: Failure | undefined, expected: string) {
    super(`${call} returned ${answerText(failure)}`, expected);
    this.failure = failure;
  }
}

/** Name of the code of a failure; its number where that is none of the contract's. */
export function codeName(failure: Pick<Failure, 'code'>): string {
  return DRIVER_CODES[failure.code] ?? String(failure.code);
}

/** What was answered, for people: `success`, or the code with the driver's words. */
export function answerText(failure: Failure | undefined): string {
  if (failure === undefined) return 'success';
  return failure.message === '' ? codeName(failure) : `${codeName(failure)} (${failure.message})`;
}
