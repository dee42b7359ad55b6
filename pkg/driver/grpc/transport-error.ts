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
  /** Takes out of a foreign text what must not be shown. */
  readonly hide?: ((text: string) => string) | undefined;
}

/**
 * Translates the lack of an answer. A gRPC status says nothing about the VM, whatever its code, so everything becomes
 * Unavailable: a driver that dies shows as CANCELLED or UNAVAILABLE, a proxy may say NOT_FOUND. Only a missing method is
 * taken over, and what the caller asked for itself is Canceled.
 */
export function unansweredError(err: unknown, end: CallEnd): DriverError {
  const { hide = (text: string): string => text } = end;
  // Not as a cause: whoever answers may quote what it was sent, and causes are logged.
  const options = { unanswered: end.mutation };
  if (end.signal.aborted)
    return new DriverError('Canceled', `${end.method} was aborted: ${messageOf(end.signal.reason)}`, options);
  if (end.timedOut)
    return new DriverError('Unavailable', `${end.method} was not answered within ${end.timeoutMs} ms`, {
      ...options,
      timedOut: true,
    });
  if (!(err instanceof ClientError))
    return new DriverError('Unavailable', `${end.method} failed: ${hide(messageOf(err))}`, options);
  if (err.code === Status.UNIMPLEMENTED) return new DriverError('Unimplemented', `${end.method}: ${hide(err.details)}`);
  return new DriverError('Unavailable', `${end.method} was not answered: ${hide(statusText(err))}`, options);
}

/** A status that came in the place of an answer, in words: why there is no connection, or the status with its text. */
export function statusText({ code, details }: ClientError): string {
  const fault = /^No connection established\. Last error: (?:Error: )?(.*?)\.? Resolution note:\s*(.*)$/s.exec(details);
  if (fault === null) return details === '' ? (Status[code] ?? '') : `${Status[code]}: ${details}`;
  const [, why = '', note = ''] = fault;
  const [errno = ''] = /\bE[A-Z]{3,}\b/.exec(why) ?? [];
  return [WORDS[errno] ?? why, note].filter((part) => part !== '').join('; ');
}

/** What the system calls what people know under these names. */
const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EACCES: 'permission denied',
  ENOENT: 'no such socket',
  ENOTFOUND: 'no such host',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'network unreachable',
  ETIMEDOUT: 'connection timed out',
};
