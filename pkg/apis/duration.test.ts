import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import { formatDuration, formatDurationNs, parseDuration, parseDurationNs } from './duration.ts';

describe('parsing a duration', () => {
  test.each([
    { text: '0', ms: 0 },
    { text: '+0', ms: 0 },
    { text: '-0', ms: 0 },
    { text: '0s', ms: 0 },
    { text: '300ms', ms: 300 },
    { text: '5m', ms: 300_000 },
    { text: '+5m', ms: 300_000 },
    { text: '-5m', ms: -300_000 },
    { text: '1h2m3.5s', ms: 3_723_500 },
    { text: '10m0s', ms: 600_000 },
    { text: '2m1h', ms: 3_720_000 },
    { text: '.5s', ms: 500 },
    { text: '1.s', ms: 1_000 },
    { text: '1500us', ms: 1.5 },
    { text: '1500µs', ms: 1.5 },
    { text: '1500μs', ms: 1.5 },
    { text: '1ns', ms: 0.000_001 },
  ])('reads $text', ({ text, ms }) => {
    expect(parseDuration(text)).toBeCloseTo(ms, 9);
  });

  test.each([
    '',
    ' ',
    '1',
    '1.5',
    's',
    '.s',
    '1d',
    '1 h',
    ' 1h',
    '1h ',
    '--1s',
    '-+1s',
    '+-1s',
    '1h-5m',
    '1e3s',
    '10M',
  ])('refuses %p', (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });

  test.each([
    { text: '2562047h47m16.854775807s', ns: 2n ** 63n - 1n },
    { text: '2562047h47m16.854775808s', ns: undefined },
    { text: '-2562047h47m16.854775808s', ns: -(2n ** 63n) },
    { text: '-2562047h47m16.854775809s', ns: undefined },
    { text: '0.3333333333333333333h', ns: 1_199_999_999_999n },
  ])('counts $text in 64 bits of nanoseconds', ({ text, ns }) => {
    expect(parseDurationNs(text)).toBe(ns);
  });
});

test('a duration of a million digits is none', () => {
  expect(parseDuration(`0.${'1'.repeat(1_000_000)}s`)).toBeUndefined();
  expect(parseDuration(`0.${'1'.repeat(900)}s`)).toBeCloseTo(111.111_111, 5);
});

describe('spelling a duration', () => {
  test.each([
    { ms: 0, text: '0s' },
    { ms: 0.000_001, text: '1ns' },
    { ms: 0.0015, text: '1.5µs' },
    { ms: 1.5, text: '1.5ms' },
    { ms: 300, text: '300ms' },
    { ms: 3_500, text: '3.5s' },
    { ms: 60_000, text: '1m0s' },
    { ms: 600_000, text: '10m0s' },
    { ms: 3_723_500, text: '1h2m3.5s' },
    { ms: 72 * 3_600_000, text: '72h0m0s' },
    { ms: -90_000, text: '-1m30s' },
  ])('spells $ms ms as $text', ({ ms, text }) => {
    expect(formatDuration(ms)).toBe(text);
  });

  test('whatever is spelled is read back as the same number of nanoseconds', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (ns) => {
        expect(parseDurationNs(formatDurationNs(ns))).toBe(ns);
      }),
    );
  });
});
