import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import { Backoff } from './backoff.ts';

describe('back-off', () => {
  test.each([
    { failures: 1, want: 100 },
    { failures: 2, want: 200 },
    { failures: 5, want: 1_600 },
    { failures: 9, want: 20_000 },
    { failures: 5_000, want: 20_000 },
  ])('after $failures failures waits $want ms', ({ failures, want }) => {
    const backoff = new Backoff({ baseMs: 100, maxMs: 20_000, jitter: 0 });

    expect(backoff.delayMs(failures)).toBe(want);
  });

  test.each([
    { random: 0, want: 800 },
    { random: 0.5, want: 1_000 },
    { random: 0.75, want: 900 },
  ])('the longest delay is jittered too: $want ms', ({ random, want }) => {
    const backoff = new Backoff({ baseMs: 100, maxMs: 20_000, jitter: 0.2, random: () => random });

    expect(backoff.delayMs(50, 1_000)).toBeCloseTo(want);
  });

  test.each([
    { askedMs: 0, want: 0 },
    { askedMs: 5_000, want: 5_250 },
    { askedMs: 600_000, want: 600_500 },
  ])('what was asked for after $askedMs ms may come at $want ms', ({ askedMs, want }) => {
    const backoff = new Backoff({ baseMs: 100, maxMs: 20_000, jitter: 0.2, random: () => 0.5 });

    expect(backoff.lateMs(askedMs)).toBe(want);
  });

  test('jitter moves a delay by at most its share, and never above the cap', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (failures, random, jitter) => {
          const options = { baseMs: 50, maxMs: 30_000 };
          const plain = new Backoff({ ...options, jitter: 0 }).delayMs(failures);
          const jittered = new Backoff({ ...options, jitter, random: () => random }).delayMs(failures);

          expect(jittered).toBeLessThanOrEqual(options.maxMs);
          expect(Math.abs(jittered - plain)).toBeLessThanOrEqual(plain * jitter + 1e-6);
        },
      ),
    );
  });
});
