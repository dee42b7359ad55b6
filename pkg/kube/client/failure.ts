import type { Status } from '../../apis/meta.ts';
import { fromHTTPDate } from '../../base/clock/clock.ts';
import { ApiError, type ApiErrorReason } from './errors.ts';

/** Reasons of answers that carry no Status: those of proxies, and of the server's own overload filter. */
const REASON_BY_CODE: Readonly<Record<number, ApiErrorReason>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  // Only the API server itself, in a Status, can say that an object does not exist.
  404: 'NotServed',
  405: 'MethodNotAllowed',
  409: 'Conflict',
  410: 'Gone',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  502: 'ServiceUnavailable',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

/** Longest part of a foreign answer that goes into a message. */
const EXCERPT = 200;

/** The error that an HTTP answer other than 2xx means. */
export function errorOfAnswer(code: number, retryAfter: string | undefined, text: string, nowMs: number): ApiError {
  const status = parseStatus(text);
  if (status !== undefined) return errorOfStatus(status, code, retryAfterMsOf(retryAfter, nowMs));

  const reason = REASON_BY_CODE[code] ?? (code >= 500 ? 'InternalError' : 'Unknown');
  const retryAfterMs = retryAfterMsOf(retryAfter, nowMs);
  const message = `server returned ${code}: ${text.trim().slice(0, EXCERPT)}`;
  return new ApiError(code, reason, message, retryAfterMs === undefined ? {} : { retryAfterMs });
}

/** The error that a Status object means: the body of a refusal, or an ERROR event of a watch. */
export function errorOfStatus(status: Status, code: number, headerRetryAfterMs?: number): ApiError {
  const actual = status.code ?? code;
  const reason = status.reason || (REASON_BY_CODE[actual] ?? 'Unknown');
  const seconds = status.details?.retryAfterSeconds;
  const retryAfterMs = headerRetryAfterMs ?? (seconds === undefined ? undefined : seconds * 1_000);
  return new ApiError(actual, reason, status.message ?? reason, {
    status,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

export function errorOfFailure(err: unknown, action: string): ApiError {
  const { message } = err instanceof Error ? err : new Error(String(err));
  return new ApiError(0, 'Unreachable', `${action}: ${message}`, { cause: err });
}

/** Codes of failures in which the request certainly or probably never reached the server's handlers. */
const CONNECTION_CODES = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/** Whether a read that failed like this is worth repeating at once: the connection was refused or broke. */
export function isConnectionFailure(err: unknown): boolean {
  return CONNECTION_CODES.has(codeOf(err));
}

/** Whether a watch ended because nothing came, not even a bookmark. */
export function isSilence(err: unknown): boolean {
  return codeOf(err) === 'UND_ERR_BODY_TIMEOUT';
}

/** What OpenSSL says of a server's certificate that our authorities do not vouch for. */
const UNTRUSTED_CODES = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_SIGNATURE_FAILURE',
  'CERT_HAS_EXPIRED',
]);

/** Whether we do not trust the server: its authority may have been replaced since ours was read. */
export function isUntrustedServer(err: unknown): boolean {
  return UNTRUSTED_CODES.has(codeOf(err));
}

function codeOf(err: unknown): string {
  const cause = err instanceof ApiError ? err.cause : err;
  return String((cause as { code?: unknown } | undefined)?.code);
}

function parseStatus(text: string): Status | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    const body = JSON.parse(text) as Status;
    return body.kind === 'Status' ? body : undefined;
  } catch {
    // Cut off, or of something that is no API server: the HTTP code has to do.
    return undefined;
  }
}

/** `Retry-After` is a number of seconds or a date. */
function retryAfterMsOf(header: string | undefined, nowMs: number): number | undefined {
  if (header !== undefined && /^\d{1,9}$/.test(header)) return Number(header) * 1_000;
  const atMs = fromHTTPDate(header);
  return atMs === undefined ? undefined : Math.max(0, atMs - nowMs);
}
