import { describe, expect, test } from '@jest/globals';

import { parseGoFloat, parseGoInt } from './go-number.ts';

describe('a whole number of a flag', () => {
  test.each([
    { text: '0', value: 0 },
    { text: '-0', value: 0 },
    { text: '42', value: 42 },
    { text: '+42', value: 42 },
    { text: '-42', value: -42 },
    { text: '1_000', value: 1_000 },
    { text: '0x2a', value: 42 },
    { text: '-0X2A', value: -42 },
    { text: '0b101', value: 5 },
    { text: '0o17', value: 15 },
    { text: '017', value: 15 },
    { text: '0_17', value: 15 },
    { text: '08', value: 8 },
  ])('reads $text', ({ text, value }) => {
    expect(parseGoInt(text)).toBe(value);
  });

  test.each(['', ' 1', '1.0', '1e3', '0x', '1__0', '_1', '1_', '--1', 'ten', '0b2'])('refuses %p', (text) => {
    expect(parseGoInt(text)).toBeUndefined();
  });
});

describe('a number of a flag', () => {
  test.each([
    { text: '20', value: 20 },
    { text: '.5', value: 0.5 },
    { text: '5.', value: 5 },
    { text: '+1e3', value: 1_000 },
    { text: '0x1p-2', value: 0.25 },
    { text: '-0x1.8p1', value: -3 },
    { text: 'inf', value: Infinity },
    { text: '+Infinity', value: Infinity },
    { text: '-Inf', value: -Infinity },
    { text: 'NaN', value: Number.NaN },
  ])('reads $text', ({ text, value }) => {
    expect(parseGoFloat(text)).toBe(value);
  });

  test.each(['', ' 1', '.', '1e', '0x10', '0xp1', 'ten', '1,5'])('refuses %p', (text) => {
    expect(parseGoFloat(text)).toBeUndefined();
  });
});
