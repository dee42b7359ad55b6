import { describe, expect, test } from '@jest/globals';

import { SystemClock } from './system-clock.ts';
import { createThrottle, unlimited } from './throttle.ts';

const never = new AbortController().signal;

describe('createThrottle', () => {
  test('lets the burst pass at once and the rest at the rate', async () => {
    const waits: number[] = [];
    const throttle = createThrottle({ qps: 8, burst: 5, clock: new SystemClock(), waited: (ms) => waits.push(ms) });

    await Promise.all(Array.from({ length: 12 }, () => throttle.acquire(never)));

    // A busy host makes every wait longer; what it cannot do is to spread those that pass together.
    const [first = 0, lastOfBurst = 0, last = 0] = [0, 4, 11].map((i) => waits.toSorted((a, b) => a - b)[i]);
    expect(lastOfBurst - first).toBeLessThan((last - lastOfBurst) / 3);
    expect(last - first).toBeGreaterThan(600);
  });

  test('gives up with the reason of the signal', async () => {
    const throttle = createThrottle({ qps: 8, burst: 1, clock: new SystemClock() });
    await throttle.acquire(never);
    const leaving = new AbortController();
    const waiting = throttle.acquire(leaving.signal);
    leaving.abort(new Error('leaving'));

    await expect(waiting).rejects.toThrow('leaving');
  });

  test('is off at 0', async () => {
    expect(createThrottle({ qps: 0, burst: 0, clock: new SystemClock() })).toBe(unlimited);
    await expect(unlimited.acquire(AbortSignal.abort(new Error('leaving')))).rejects.toThrow('leaving');
  });
});
