import { describe, expect, test } from '@jest/globals';

import { SystemClock } from '../clock/system-clock.ts';
import { createThrottle, unlimited } from './throttle.ts';

const never = new AbortController().signal;

describe('createThrottle', () => {
  test('lets the burst pass at once and the rest at the rate', async () => {
    const waits: number[] = [];
    const throttle = createThrottle({ qps: 20, burst: 5, clock: new SystemClock(), waited: (ms) => waits.push(ms) });

    await Promise.all(Array.from({ length: 12 }, () => throttle.acquire(never)));

    expect(waits.filter((ms) => ms < 200)).toHaveLength(5);
    expect(waits.every((ms) => ms < 900)).toBe(true);
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
