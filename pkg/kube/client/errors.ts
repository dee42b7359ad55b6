import type { Status } from '../../apis/meta.ts';
import { LONGEST_TEXT, shortText } from '../../apis/short-text.ts';

/** What the API server refused, or why it could not be asked. `reason` is a metav1.StatusReason or one of ours. */
export type ApiErrorReason =
  | 'BadRequest'
  | 'Unauthorized'
  | 'Forbidden'
  | 'NotFound'
  | 'AlreadyExists'
  | 'Conflict'
  | 'Gone'
  | 'Expired'
  | 'Invalid'
  | 'Timeout'
  | 'ServerTimeout'
  | 'TooManyRequests'
  | 'InternalError'
  | 'ServiceUnavailable'
  /** Ours: a 404 without a Status. The kind is not served, or what answered is no API server: it says nothing about an object. */
  | 'NotServed'
  /** Ours: no answer (connection refused, reset, TLS, DNS). A mutation may or may not have happened. */
  | 'Unreachable'
  /** Ours: no answer within the deadline. A mutation may or may not have happened. */
  | 'DeadlineExceeded'
  /** Ours: there are no credentials that the server has not refused. Nothing was sent. */
  | 'NoCredentials'
  | (string & {});

/** An answer of the API server that is not a success, or the lack of an answer. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status; 0 when there was no answer. */
  readonly code: number;
  readonly reason: ApiErrorReason;
  /** What `Retry-After` or `details.retryAfterSeconds` asks for. */
  readonly retryAfterMs: number | undefined;
  readonly status: Status | undefined;
  /** What was to be written, such as `machinesets/a`: a webhook does not say it. */
  object?: string;

  constructor(
    code: number,
    reason: ApiErrorReason,
    message: string,
    options: { retryAfterMs?: number; status?: Status; cause?: unknown } = {},
  ) {
    // A webhook may write anything; it is stored in statuses and told in Events.
    super(shortText(message, 2 * LONGEST_TEXT), options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.reason = reason;
    this.retryAfterMs = options.retryAfterMs;
    this.status = options.status;
  }

  static is(err: unknown, ...reasons: ApiErrorReason[]): err is ApiError {
    return err instanceof ApiError && reasons.includes(err.reason);
  }
}

/** The object does not exist. Nothing else means "gone". */
export const isNotFound = (err: unknown): err is ApiError => ApiError.is(err, 'NotFound');
/**
 * The server does not let us, or does not serve that path (the objects that we know of may exist all the same): forever, or
 * because it is just starting.
 */
export const isForbiddenOrNotServed = (err: unknown): err is ApiError =>
  ApiError.is(err, 'Forbidden', 'Unauthorized', 'NotServed');
/** A server that is just starting refuses for a moment (0.7 to 2 s were seen) what it grants then; what it refuses for so long is meant. */
export const REFUSAL_PATIENCE_MS = 10_000;
/** The server refuses what is written: a permission, a quota, a webhook or a rule of the kind forbids it, until somebody changes one of the two. */
export const isDenial = (err: unknown): err is ApiError =>
  err instanceof ApiError && [400, 403, 422].includes(err.code);
/** A precondition (uid, resourceVersion) did not hold. */
export const isConflict = (err: unknown): err is ApiError => ApiError.is(err, 'Conflict');
export const isAlreadyExists = (err: unknown): err is ApiError => ApiError.is(err, 'AlreadyExists');
/** The server asks us to come back later; for an eviction: a PodDisruptionBudget forbids it now. */
export const isTooManyRequests = (err: unknown): err is ApiError => ApiError.is(err, 'TooManyRequests');
/** The resourceVersion or continue token is too old. */
export const isExpired = (err: unknown): err is ApiError =>
  err instanceof ApiError && (err.code === 410 || err.reason === 'Expired' || err.reason === 'Gone');
/** Whether a mutation that failed like this may have happened all the same. */
export const mayHaveHappened = (err: unknown): boolean =>
  err instanceof ApiError && (err.code === 0 || err.code >= 500) && err.reason !== 'NoCredentials';

/** For `catch`: an object that does not exist is undefined. Throws anything else. */
export function ignoreNotFound(err: unknown): undefined {
  if (!isNotFound(err)) throw err;
}

/** For `catch`: an object of that name that exists already is fine. Throws anything else. */
export function ignoreAlreadyExists(err: unknown): undefined {
  if (!isAlreadyExists(err)) throw err;
}
