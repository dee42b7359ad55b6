import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import { compareResourceVersions } from './resource-version.ts';

describe('compareResourceVersions', () => {
  test('orders as integers of any length', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n }), fc.bigInt({ min: 0n }), (a, b) => {
        const order = Math.sign(compareResourceVersions(a.toString(), b.toString()));
        expect(order).toBe(a < b ? -1 : Number(a > b));
      }),
    );
  });

  test('does not count leading zeros', () => {
    expect(compareResourceVersions('0010', '9')).toBeGreaterThan(0);
    expect(compareResourceVersions('0', '00')).toBe(0);
  });
});
