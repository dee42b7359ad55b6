import { DriverError, type DriverCode } from '../driver/error.ts';
import { ApiError } from '../kube/client/errors.ts';

/** What the API server's refusals mean for a caller of the driver. What is not named is asked again soon: Unavailable. */
const CODES: Readonly<Record<string, DriverCode>> = {
  Unauthorized: 'Unauthenticated',
  Forbidden: 'PermissionDenied',
  // The name is a Machine's and all else follows from the class.
  Invalid: 'InvalidArgument',
  BadRequest: 'InvalidArgument',
  Conflict: 'Aborted',
  Expired: 'Aborted',
};

/** A failure of the API server as one of the provider, in the server's own words; anything else stays as it is. */
export function driverFailure(err: unknown): unknown {
  if (!(err instanceof ApiError)) return err;
  const { reason, message, retryAfterMs } = err;
  const code = CODES[reason] ?? 'Unavailable';
  return new DriverError(code, message, { cause: err, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
}
