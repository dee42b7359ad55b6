import { describe, expect, test } from '@jest/globals';
import { assert, constantFrom, double, nat, property } from 'fast-check';

import { MINUTE, SECOND } from '../../test/durations.ts';
import { DRIVER_CODES } from './error.ts';
import { retryDelayMs, retryOf } from './retry.ts';

describe('retryOf', () => {
  test.each([
    { call: 'create', code: 'ResourceExhausted', maxMs: 10 * MINUTE, clears: false },
    { call: 'create', code: 'Unknown', maxMs: 5 * SECOND, clears: false },
    { call: 'create', code: 'DeadlineExceeded', maxMs: 5 * SECOND, clears: false },
    { call: 'create', code: 'Aborted', maxMs: 5 * SECOND, clears: false },
    { call: 'create', code: 'Unavailable', maxMs: 5 * SECOND, clears: false },
    { call: 'create', code: 'InvalidArgument', maxMs: 3 * MINUTE, clears: true },
    { call: 'create', code: 'Internal', maxMs: 3 * MINUTE, clears: true },
    { call: 'status', code: 'OutOfRange', maxMs: 3 * MINUTE, clears: true },
    { call: 'status', code: 'Unavailable', maxMs: 5 * SECOND, clears: false },
    { call: 'initialize', code: 'NotFound', maxMs: 5 * SECOND, clears: false },
    { call: 'initialize', code: 'Internal', maxMs: 5 * SECOND, clears: false },
    { call: 'status-of-deleted', code: 'Unavailable', maxMs: 5 * SECOND, clears: false },
    { call: 'status-of-deleted', code: 'Internal', maxMs: MINUTE, clears: false },
    { call: 'delete', code: 'Unavailable', maxMs: 5 * SECOND, clears: true },
    { call: 'delete', code: 'ResourceExhausted', maxMs: MINUTE, clears: true },
    { call: 'delete', code: 'PermissionDenied', maxMs: MINUTE, clears: true },
    { call: 'list', code: 'Unimplemented', maxMs: 10 * MINUTE, clears: false },
  ] as const)('$call after $code waits at most $maxMs ms', ({ call, code, maxMs, clears }) => {
    expect(retryOf(call, code)).toMatchObject({ maxMs, clearsLastKnownState: clears });
  });

  test('shares the wait for exhausted resources over the class and begins with 15 s', () => {
    expect(retryOf('create', 'ResourceExhausted')).toMatchObject({ firstMs: 15_000, perClass: true });
    expect(retryOf('create', 'ResourceExhausted', 10_000)).toMatchObject({ firstMs: 10_000, maxMs: 10_000 });
    expect(retryOf('create', 'ResourceExhausted', 0)).toMatchObject({ maxMs: 600_000 });
  });
});

describe('retryDelayMs', () => {
  const medium = retryOf('create', 'Internal');

  test.each([
    { failures: 1, latest: 5_000 },
    { failures: 2, latest: 10_000 },
    { failures: 5, latest: 80_000 },
    { failures: 6, latest: 160_000 },
    { failures: 7, latest: 180_000 },
    { failures: 10_000, latest: 180_000 },
  ])('waits between half of $latest ms and all of it after $failures failures', ({ failures, latest }) => {
    expect(retryDelayMs(medium, failures, 0)).toBe(latest / 2);
    expect(retryDelayMs(medium, failures, 0.999_999)).toBeCloseTo(latest, -1);
  });

  test('waits as long as the provider asks', () => {
    expect(retryDelayMs(medium, 1, 0.5, 240_000)).toBe(240_000);
    expect(retryDelayMs(medium, 1, 0.5, 10)).toBe(3_750);
  });

  test('never waits longer than the code allows, nor shorter than half of the first wait', () => {
    assert(
      property(
        constantFrom('create', 'initialize', 'status', 'status-of-deleted', 'delete', 'list' as const),
        constantFrom(...DRIVER_CODES),
        nat(100),
        double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (call, code, failures, random) => {
          const retry = retryOf(call, code);
          const delay = retryDelayMs(retry, failures, random);
          expect(delay).toBeLessThanOrEqual(retry.maxMs);
          expect(delay).toBeGreaterThanOrEqual(Math.min(retry.firstMs, retry.maxMs) / 2);
        },
      ),
    );
  });
});
