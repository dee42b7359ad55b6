import { expect, test } from '@jest/globals';

import { WELL } from '../../../test/status-page/served-page.ts';
import { holdersOf, isStandby, NOTHING_KNOWN } from './state.ts';
import { ageText, countText, plural, untilOf } from './texts.ts';

const NOW_MS = Date.parse('2026-01-01T00:10:00Z');

test('ages and times ahead count from now, and are nothing without a time', () => {
  expect(ageText('2026-01-01T00:09:30Z', NOW_MS)).toBe('30s');
  expect(ageText('2026-01-01T00:10:05Z', NOW_MS)).toBe('0s');
  expect(untilOf('2026-01-01T00:12:30Z', NOW_MS)).toBe('in 2m30s');
  expect(untilOf('2026-01-01T00:10:00Z', NOW_MS)).toBe('now');
  expect([ageText(undefined, NOW_MS), ageText('x', NOW_MS), untilOf('x', NOW_MS)]).toEqual(['', '', '']);
});

test('counts are read by people', () => {
  expect([countText(1_234_567), plural(1, 'drain'), plural(2_000, 'machine')]).toEqual([
    '1,234,567',
    '1 drain',
    '2,000 machines',
  ]);
});

test.each([
  { states: ['leading', 'standing-by'], is: false },
  { states: ['always'], is: false },
  { states: ['standing-by', 'suspended'], is: true },
  { states: [], is: false },
] as const)('a process whose Leases are $states stands by: $is', ({ states, is }) => {
  const leaders = states.map((state) => ({ lease: state, state, holder: 'other' }));
  const sections = { ...NOTHING_KNOWN.sections, ...WELL, leaders };

  expect(isStandby(sections)).toBe(is);
  expect(holdersOf(sections)).toEqual(leaders.length === 0 ? [] : ['other']);
});
