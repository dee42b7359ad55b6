import { expect, test } from '@jest/globals';

import { bandsOf, ceilingOf, classOfPhase, phasesOf, totalOf } from './phase-bands.ts';

const AREA = {
  width: 60,
  height: 100,
  fromMs: Date.parse('2026-01-01T00:00:00Z'),
  toMs: Date.parse('2026-01-01T00:01:00Z'),
  ceiling: 10,
};

const at = (second: number): string => `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`;

test('phases are stacked, well ones below, and unknown ones on top', () => {
  const samples = [
    { at: at(0), phases: { Failed: 1, Odd: 1, Running: 2 } },
    { at: at(15), phases: { Running: 2, Pending: 3 } },
  ];

  expect(phasesOf(samples)).toEqual(['Running', 'Pending', 'Failed', 'Odd']);
  expect(samples.map(totalOf)).toEqual([4, 5]);
  expect(bandsOf(samples, AREA)).toEqual([
    { phase: 'Running', path: 'M0,80L15,80L15,100L0,100Z' },
    { phase: 'Pending', path: 'M0,80L15,50L15,80L0,80Z' },
    { phase: 'Failed', path: 'M0,70L15,50L15,50L0,80Z' },
    { phase: 'Odd', path: 'M0,60L15,50L15,50L0,70Z' },
  ]);
});

test('a time without samples is a gap', () => {
  const samples = [
    { at: '2026-01-01T00:00:00Z', phases: { Running: 5 } },
    { at: '2026-01-01T00:01:00Z', phases: { Running: 5 } },
    { at: '2026-01-01T00:02:01Z', phases: { Running: 5 } },
  ];

  const [band] = bandsOf(samples, { ...AREA, toMs: Date.parse('2026-01-01T00:02:00Z') });

  expect(band?.path.match(/M/g)).toHaveLength(2);
});

test.each([
  [0, 4],
  [4, 4],
  [5, 5],
  [10, 10],
  [11, 12],
  [99, 100],
  [1_984, 2_000],
  [2_000, 2_000],
  [2_003, 2_500],
  [7_200, 8_000],
])('the axis for %d machines ends at %d', (largest, want) => {
  expect(ceilingOf(largest)).toBe(want);
});

test.each([
  ['Running', 'phase-Running'],
  ['anything "else"', 'phase-other'],
])('phase %s has class %s', (phase, want) => {
  expect(classOfPhase(phase)).toBe(want);
});
