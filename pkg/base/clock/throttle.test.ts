import { setImmediate } from 'node:timers/promises';

import { describe, expect, jest, test } from '@jest/globals';

import { createThrottle, ThrottleClosedError, unlimited } from './throttle.ts';

const never = new AbortController().signal;

describe('createThrottle', () => {
  test('lets the burst pass at once and the rest at the rate', async () => {
    // The library has timers of its own, and knows no clock but the host's.
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
    try {
      const throttle = createThrottle({ qps: 8, burst: 5 });
      let passed = 0;
      for (let i = 0; i < 12; i++) void throttle.acquire(never).then(() => (passed += 1));
      /** The library gives each request several turns, a timer each. */
      const passedAfter = async (ms: number): Promise<number> => {
        for (let turn = 0; turn < ms; turn++) {
          await jest.advanceTimersByTimeAsync(1);
          await setImmediate();
        }
        return passed;
      };
      await import('bottleneck');

      expect([await passedAfter(100), await passedAfter(100)]).toEqual([5, 5]);
      expect([await passedAfter(100), await passedAfter(250), await passedAfter(250)]).toEqual([7, 9, 11]);
      expect(await passedAfter(250)).toBe(12);
      await Promise.all([throttle.close(), passedAfter(10)]);
    } finally {
      jest.useRealTimers();
    }
  });

  test('gives up with the reason of the signal', async () => {
    const throttle = createThrottle({ qps: 8, burst: 1 });
    await throttle.acquire(never);
    const leaving = new AbortController();
    const waiting = throttle.acquire(leaving.signal);
    leaving.abort(new Error('leaving'));

    await expect(waiting).rejects.toThrow('leaving');
  });

  test('refuses whoever waits when it is closed, and leaves no timer, which would keep the process alive', async () => {
    await import('bottleneck');
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
    try {
      const throttle = createThrottle({ qps: 0.001, burst: 1 });
      const asked = Promise.allSettled(Array.from({ length: 3 }, () => throttle.acquire(never)));
      await jest.advanceTimersByTimeAsync(100);

      const closed = throttle.close();
      await jest.advanceTimersByTimeAsync(100);

      await closed;
      expect((await asked).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
      await expect(throttle.acquire(never)).rejects.toBeInstanceOf(ThrottleClosedError);
      expect(jest.getTimerCount()).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });

  test('is off at 0', async () => {
    expect(createThrottle({ qps: 0, burst: 0 })).toBe(unlimited);
    await expect(unlimited.acquire(AbortSignal.abort(new Error('leaving')))).rejects.toThrow('leaving');
  });
});
