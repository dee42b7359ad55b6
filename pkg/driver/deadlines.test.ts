import { describe, expect, test } from '@jest/globals';

import { MINUTE } from '../../test/durations.ts';
import { deletionTimeoutMs, isTimeout, repeatableTimeoutMs, wholeTimeoutMs } from './deadlines.ts';
import { DriverError } from './error.ts';

describe('a creation', () => {
  test.each([
    { timeouts: 0, waitMs: MINUTE },
    { timeouts: 1, waitMs: 2 * MINUTE },
    { timeouts: 3, waitMs: 8 * MINUTE },
    { timeouts: 5, waitMs: 20 * MINUTE },
    { timeouts: 1_000, waitMs: 20 * MINUTE },
  ])('that may be repeated waits $waitMs ms after $timeouts timeouts', ({ timeouts, waitMs }) => {
    expect(repeatableTimeoutMs(20 * MINUTE, timeouts)).toBe(waitMs);
  });

  test.each([
    { creationTimeoutMs: MINUTE, waitMs: 10 * MINUTE },
    { creationTimeoutMs: 20 * MINUTE, waitMs: 20 * MINUTE },
  ])('that may not waits $waitMs ms when the machine has $creationTimeoutMs ms', ({ creationTimeoutMs, waitMs }) => {
    expect(wholeTimeoutMs(creationTimeoutMs)).toBe(waitMs);
  });
});

test.each([
  { slowestMs: undefined, timeouts: 0, waitMs: MINUTE },
  { slowestMs: undefined, timeouts: 9, waitMs: MINUTE },
  { slowestMs: 200, timeouts: 0, waitMs: 10_000 },
  { slowestMs: 4_000, timeouts: 0, waitMs: 16_000 },
  { slowestMs: 30_000, timeouts: 0, waitMs: MINUTE },
  { slowestMs: 200, timeouts: 4, waitMs: 10_000 },
  { slowestMs: 200, timeouts: 5, waitMs: 20_000 },
  { slowestMs: 200, timeouts: 6, waitMs: 40_000 },
  { slowestMs: 200, timeouts: 1_000, waitMs: MINUTE },
])('a deletion waits $waitMs ms after $timeouts timeouts when the slowest other took $slowestMs ms', (row) => {
  expect(deletionTimeoutMs(row.slowestMs, row.timeouts)).toBe(row.waitMs);
});

test.each([
  { what: 'a deadline of ours', code: 'Unavailable', options: { unanswered: true, timedOut: true }, is: true },
  { what: 'a deadline of the driver', code: 'DeadlineExceeded', options: {}, is: true },
  { what: 'a read that took too long', code: 'Unavailable', options: { timedOut: true }, is: false },
  { what: 'a broken connection', code: 'Unavailable', options: { unanswered: true }, is: false },
  { what: 'a failure', code: 'Internal', options: {}, is: false },
] as const)('$what is a timeout of a mutation: $is', ({ code, options, is }) => {
  expect(isTimeout(new DriverError(code, 'x', options))).toBe(is);
});
