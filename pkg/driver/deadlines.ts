import type { DriverError } from './error.ts';

/** Longest that a read waits for its answer. */
export const READ_TIMEOUT_MS = 30_000;
/** Longest that DeleteMachine waits for its answer. It may be repeated at any time, so that one that hangs is asked again. */
export const DELETE_TIMEOUT_MS = 60_000;
/** The least that it waits, and how many times as long as the slowest of the others. */
const LEAST_DELETE_MS = 10_000;
const TIMES_THE_SLOWEST = 4;
/** So many timeouts in a row may be bad luck. */
const UNLUCKY_TIMEOUTS = 5;
/** Longest that the first CreateMachine or InitializeMachine waits for its answer, where it may be repeated. */
const FIRST_TIMEOUT_MS = 60_000;
/** The least that a CreateMachine waits for its answer if it may not be repeated at once. */
const MIN_WHOLE_TIMEOUT_MS = 600_000;

/** Longest that a mutation waits which must not be repeated before it is certain that it did nothing. */
export function wholeTimeoutMs(creationTimeoutMs: number): number {
  return Math.max(creationTimeoutMs, MIN_WHOLE_TIMEOUT_MS);
}

/**
 * How long DeleteMachine waits for its answer: its whole time, unless other deletions of the account have been answered in at most `slowestMs`
 * (undefined: nobody knows). After 5 timeouts in a row it waits for twice as long each time: a single deletion may take its time.
 */
export function deletionTimeoutMs(slowestMs: number | undefined, timeouts: number): number {
  if (slowestMs === undefined) return DELETE_TIMEOUT_MS;
  const usualMs = Math.max(LEAST_DELETE_MS, TIMES_THE_SLOWEST * slowestMs);
  const doublings = Math.min(Math.max(0, timeouts + 1 - UNLUCKY_TIMEOUTS), 10);
  return Math.min(usualMs * 2 ** doublings, DELETE_TIMEOUT_MS);
}

/**
 * How long CreateMachine or InitializeMachine waits for its answer, if it may be repeated: not for its whole time, because what
 * a call without answer has begun is found by the next one. Each time it ran out, `timeouts` times in a row, it waits for twice
 * as long, so that a slow provider gets its time.
 */
export function repeatableTimeoutMs(creationTimeoutMs: number, timeouts: number): number {
  return Math.min(FIRST_TIMEOUT_MS * 2 ** Math.min(timeouts, 10), wholeTimeoutMs(creationTimeoutMs));
}

/** Whether a mutation ended because its time ran out, here or at the driver. */
export function isTimeout({ code, unanswered, timedOut }: DriverError): boolean {
  return code === 'DeadlineExceeded' || (unanswered && timedOut);
}
