import { expect, test } from '@jest/globals';

import { coveredMs, BlindTimes } from './blind-times.ts';

test.each([
  { what: 'nothing', intervals: [], ms: 0 },
  {
    what: 'what lies before and after',
    intervals: [
      [0, 100],
      [300, 400],
    ],
    ms: 0,
  },
  {
    what: 'what lies across the borders, as far as it is inside',
    intervals: [
      [50, 120],
      [190, 400],
    ],
    ms: 30,
  },
  {
    what: 'what overlaps, once',
    intervals: [
      [140, 180],
      [110, 150],
      [120, 130],
    ],
    ms: 70,
  },
  {
    what: 'what covers all',
    intervals: [
      [0, 1_000],
      [120, 130],
    ],
    ms: 100,
  },
])('counts $what: $ms ms of 100', ({ intervals, ms }) => {
  const times = intervals.map(([fromMs = 0, toMs = 0]) => ({ fromMs, toMs }));

  expect(coveredMs(times, { fromMs: 100, toMs: 200 })).toBe(ms);
});

test('a watch that is resumed at once was never blind', () => {
  const sight = new BlindTimes();

  sight.wasLost({ fromMs: 0, toMs: 100 });
  sight.wasLost({ fromMs: 5_000, toMs: 20_000 });

  expect(sight.lost).toEqual([{ fromMs: 5_000, toMs: 20_000 }]);
});
