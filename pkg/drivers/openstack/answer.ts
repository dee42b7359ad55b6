import { shortText } from '../../apis/short-text.ts';
import { fromHTTPDate } from '../../base/clock/clock.ts';
import { type DriverCode, DriverError } from '../../driver/error.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Parsed JSON; the text itself where it is none. */
  readonly body: unknown;
}

export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';
  /** False when the request certainly never arrived. */
  readonly wasSent: boolean;

  constructor(message: string, wasSent: boolean, cause?: unknown) {
    super(message, { cause });
    this.wasSent = wasSent;
  }
}

/** The provider's words are kept so far: a service quotes what it was sent, user data included. */
const MAX_TEXT_LENGTH = 400;

/** A service refused, or failed to do, what it was asked for. */
export function errorOf(answer: Answer, what: string): DriverError {
  const { type, words } = errorTextOf(answer.body);
  const retryAfterMs = retryAfterMsOf(answer);
  const shown = shortText(words.trim().replaceAll(/\s+/g, ' '), MAX_TEXT_LENGTH);
  const more = retryAfterMs === undefined ? {} : { retryAfterMs };
  return new DriverError(driverCodeOf(answer.status, type, words), `${what}: ${answer.status} ${shown}`, more);
}

/**
 * Of Neutron: port security is off, an address or a MAC is somebody else's, no subnet is for ports of machines, a port carries a trunk. Of Nova:
 * the server is locked. None of these passes by itself.
 */
const NEEDS_SOMEBODY = {
  type: /PortSecurity|AddressPair|IpAddressAlreadyAllocated|NoMatchingSubnet|MacAddressInUse|Trunk/,
  words: /\bis locked\b/i,
};

/**
 * What follows from an answer that is no success:
 *
 * | answer                                                       | code              |
 * |--------------------------------------------------------------|-------------------|
 * | 401                                                          | Unauthenticated   |
 * | 403 "Quota exceeded…", "Maximum number of…"                  | ResourceExhausted |
 * | 403, 413 otherwise                                           | PermissionDenied, ResourceExhausted |
 * | 409 OverQuota, IpAddressGenerationFailure (Neutron)          | ResourceExhausted |
 * | 409 that only a person can resolve: see NEEDS_SOMEBODY       | FailedPrecondition |
 * | 409 otherwise: something else is under way                   | Aborted           |
 * | 400, 404, 406, 422                                           | InvalidArgument   |
 * | 429, 5xx                                                     | Unavailable       |
 */
export function driverCodeOf(status: number, type: string, words: string): DriverCode {
  if (status === 429 || status >= 500) return 'Unavailable';
  switch (status) {
    case 401:
      return 'Unauthenticated';
    case 403:
      return /quota exceeded|maximum number/i.test(words) ? 'ResourceExhausted' : 'PermissionDenied';
    case 413:
      return 'ResourceExhausted';
    case 409:
      if (type === 'OverQuota' || type === 'IpAddressGenerationFailure') return 'ResourceExhausted';
      return NEEDS_SOMEBODY.type.test(type) || NEEDS_SOMEBODY.words.test(words) ? 'FailedPrecondition' : 'Aborted';
    case 400:
    case 404:
    case 406:
    case 422:
      return 'InvalidArgument';
    default:
      return 'Internal';
  }
}

/** What a build that failed says: that there is no room is known by its words only. */
export function codeOfFault(words: string): DriverCode {
  const isFull =
    /no valid host was found|not enough hosts available|available weighted backend|quota exceeded|(exceeds|maximum number).* quota/i;
  return isFull.test(words) ? 'ResourceExhausted' : 'Internal';
}

/** When the service asks us to come back; undefined when it does not. */
export function retryAfterMsOf({ headers }: Pick<Answer, 'headers'>): number | undefined {
  const { 'retry-after': text, date } = headers;
  if (text !== undefined && /^\d{1,6}$/.test(text)) return Number(text) * 1_000;
  const [until, now] = [fromHTTPDate(text), fromHTTPDate(date)];
  return until === undefined || now === undefined ? undefined : Math.max(0, until - now);
}

/**
 * The words of an error: Keystone says {error: {message}}, Nova {badRequest: {message}}, Neutron {NeutronError: {type, message}}, Glance
 * HTML or plain text.
 */
export function errorTextOf(body: unknown): { readonly type: string; readonly words: string } {
  if (typeof body === 'string') return { type: '', words: body.replaceAll(/<[^>]*>/g, ' ') };
  if (typeof body !== 'object' || body === null) return { type: '', words: '' };
  const [inner] = Object.values(body) as unknown[];
  if (typeof inner !== 'object' || inner === null) return { type: '', words: JSON.stringify(body) };
  const { message, type } = inner as { message?: unknown; type?: unknown };
  return {
    type: typeof type === 'string' ? type : '',
    words: typeof message === 'string' ? message : JSON.stringify(body),
  };
}
