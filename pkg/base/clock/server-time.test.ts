import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { ServerTime } from './server-time.ts';

/** A server whose clock differs by `skewMs`, asked `times` times with a given round trip. */
function ask(skewMs: number, times: number, roundTripMs = 20) {
  const clock = new FakeClock(Date.parse('2026-01-01T00:00:00.300Z'));
  const moves: number[] = [];
  const serverTime = new ServerTime({ clock, reanchored: (ms) => moves.push(ms) });
  const trueSkew = (): number => skewMs - moves.reduce((sum, ms) => sum + ms, 0);
  for (let i = 0; i < times; i++) {
    const sentMs = clock.monotonicMs();
    clock.advance(roundTripMs / 2);
    const date = new Date(clock.now() + trueSkew()).toUTCString();
    clock.advance(roundTripMs / 2);
    serverTime.observe({ date, sentMs, receivedMs: clock.monotonicMs() });
    clock.advance(2_000);
  }
  return { moves, leftMs: trueSkew() };
}

describe('server time', () => {
  test.each([
    { what: 'equal clocks', skewMs: 0, roundTripMs: 20 },
    { what: 'a skew below the tolerance', skewMs: 4_500, roundTripMs: 20 },
    { what: 'a skew below the tolerance, behind', skewMs: -4_500, roundTripMs: 20 },
    { what: 'a slow answer that could also mean equal clocks', skewMs: -8_000, roundTripMs: 15_000 },
  ])('$what moves nothing', ({ skewMs, roundTripMs }) => {
    expect(ask(skewMs, 10, roundTripMs).moves).toEqual([]);
  });

  test.each([{ skewMs: 30_000 }, { skewMs: -30_000 }, { skewMs: 86_400_000 }])(
    'a skew of $skewMs ms is corrected once, after three answers',
    ({ skewMs }) => {
      expect(ask(skewMs, 2).moves).toEqual([]);

      const { moves, leftMs } = ask(skewMs, 20);

      expect(moves).toHaveLength(1);
      expect(Math.abs(leftMs)).toBeLessThan(1_000);
    },
  );

  test('answers that contradict each other move nothing', () => {
    const clock = new FakeClock();
    const moves: number[] = [];
    const serverTime = new ServerTime({ clock, reanchored: (ms) => moves.push(ms) });

    for (let i = 0; i < 12; i++) {
      const date = new Date(clock.now() + (i % 2 === 0 ? 60_000 : -60_000)).toUTCString();
      serverTime.observe({ date, sentMs: clock.monotonicMs(), receivedMs: clock.monotonicMs() });
    }

    expect(moves).toEqual([]);
  });

  test.each([{ date: undefined }, { date: 'soon' }, { date: 'garbage 1' }])(
    'a Date header of $date is ignored',
    ({ date }) => {
      const moves: number[] = [];
      const serverTime = new ServerTime({ clock: new FakeClock(), reanchored: (ms) => moves.push(ms) });

      for (let i = 0; i < 5; i++) serverTime.observe({ date, sentMs: 0, receivedMs: 0 });

      expect(moves).toEqual([]);
    },
  );

  test('never leaves a larger error than it found, whatever skew and round trip', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: -200_000, max: 200_000 }),
        fc.integer({ min: 0, max: 20_000 }),
        (skewMs, roundTripMs) => {
          const { leftMs } = ask(skewMs, 8, roundTripMs);

          expect(Math.abs(leftMs)).toBeLessThanOrEqual(Math.max(Math.abs(skewMs), 1_000));
        },
      ),
    );
  });
});
