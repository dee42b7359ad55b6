import { ClientError, Status } from 'nice-grpc';

import { messageOf } from '../errno.ts';
import { DriverError } from '../error.ts';

/** What ended a call before an answer came, as far as this side knows. */
export interface CallEnd {
  readonly method: string;
  /** The method may have changed something at the provider. */
  readonly mutation: boolean;
  /** The caller's own signal. */
  readonly signal: AbortSignal;
  /** True when our own deadline passed. */
  readonly timedOut: boolean;
  readonly timeoutMs: number;
}

/**
 * Translates the lack of an answer. A gRPC status says nothing about the VM, whatever its code, so everything becomes
 * Unavailable: a driver that dies shows as CANCELLED or UNAVAILABLE, a proxy may say NOT_FOUND. Only a missing method is
 * taken over, and what the caller asked for itself is Canceled.
 */
export function unansweredError(err: unknown, end: CallEnd): DriverError {
  const options = { unanswered: end.mutation, cause: err };
  if (end.signal.aborted)
    return new DriverError('Canceled', `${end.method} was aborted: ${messageOf(end.signal.reason)}`, options);
  if (end.timedOut)
    return new DriverError('Unavailable', `${end.method} was not answered in ${end.timeoutMs} ms`, {
      ...options,
      timedOut: true,
    });
  if (!(err instanceof ClientError))
    return new DriverError('Unavailable', `${end.method} failed: ${messageOf(err)}`, options);
  if (err.code === Status.UNIMPLEMENTED)
    return new DriverError('Unimplemented', `${end.method}: ${err.details}`, { cause: err });
  return new DriverError('Unavailable', `${end.method} was not answered: ${Status[err.code]}: ${err.details}`, options);
}
