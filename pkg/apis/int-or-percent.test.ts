import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import { isIntOrPercent, resolveIntOrPercent } from './int-or-percent.ts';

describe('a count or percentage', () => {
  test.each([
    { value: 0, total: 10, up: 0, down: 0 },
    { value: 3, total: 10, up: 3, down: 3 },
    { value: 2_147_483_647, total: 10, up: 2_147_483_647, down: 2_147_483_647 },
    { value: '0%', total: 10, up: 0, down: 0 },
    { value: '25%', total: 10, up: 3, down: 2 },
    { value: '100%', total: 7, up: 7, down: 7 },
    { value: '150%', total: 3, up: 5, down: 4 },
    { value: '1%', total: 0, up: 0, down: 0 },
    { value: '29%', total: 100, up: 29, down: 29 },
  ])('$value of $total is $up rounded up and $down rounded down', ({ value, total, up, down }) => {
    expect(resolveIntOrPercent(value, total, 'up')).toBe(up);
    expect(resolveIntOrPercent(value, total, 'down')).toBe(down);
  });

  test.each([
    -1,
    1.5,
    2_147_483_648,
    Number.NaN,
    '',
    '3',
    '25',
    '%',
    '-5%',
    '+5%',
    '2.5%',
    ' 5%',
    '5 %',
    '1234567890%',
    null,
    undefined,
    {},
    true,
  ])('%p is none', (value) => {
    expect(isIntOrPercent(value)).toBe(false);
    expect(resolveIntOrPercent(value, 10, 'up')).toBeUndefined();
  });

  test('a percentage of many machines that 32 bits do not hold is undefined', () => {
    expect(resolveIntOrPercent('999999999%', 1_000_000, 'down')).toBeUndefined();
  });

  test('rounding up and down differ by at most one and enclose the exact value', () => {
    fc.assert(
      fc.property(fc.nat(200), fc.nat(1_000_000), (percent, total) => {
        const up = resolveIntOrPercent(`${percent}%`, total, 'up') ?? Number.NaN;
        const down = resolveIntOrPercent(`${percent}%`, total, 'down') ?? Number.NaN;

        expect(up - down).toBe((percent * total) % 100 === 0 ? 0 : 1);
        expect(down * 100).toBeLessThanOrEqual(percent * total);
        expect(up * 100).toBeGreaterThanOrEqual(percent * total);
      }),
    );
  });
});
