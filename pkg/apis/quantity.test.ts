import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import { compareQuantities, isQuantity, quantitiesEqual, quantityAsNumber, subtractQuantities } from './quantity.ts';

describe('quantities by value', () => {
  test.each([
    { a: '1', b: 1, order: 0 },
    { a: '1000m', b: '1', order: 0 },
    { a: '1k', b: '1e3', order: 0 },
    { a: '1E', b: '1000P', order: 0 },
    { a: '1Ki', b: '1024', order: 0 },
    { a: '1.5Gi', b: '1536Mi', order: 0 },
    { a: '0.5', b: '500m', order: 0 },
    { a: '.5', b: '5e-1', order: 0 },
    { a: '1.', b: '1', order: 0 },
    { a: '+2', b: '2', order: 0 },
    { a: '1000000000n', b: '1', order: 0 },
    { a: '-1', b: '0', order: -1 },
    { a: '1G', b: '1Gi', order: -1 },
    { a: '8Ei', b: '9223372036854775807', order: 1 },
    { a: '9007199254740993', b: '9007199254740992', order: 1 },
  ])('$a compared with $b is $order', ({ a, b, order }) => {
    expect(compareQuantities(a, b)).toBe(order);
    expect(compareQuantities(b, a)).toBe(-order + 0);
    expect(quantitiesEqual(a, b)).toBe(order === 0);
  });

  test.each([
    { a: '2', b: '80m', want: '1920m' },
    { a: '4Gi', b: '1Gi', want: '3221225472' },
    { a: '1', b: '2', want: '0' },
    { a: '1', b: '1n', want: '999m' },
    { a: 'many', b: '1', want: undefined },
  ])('$a without $b is $want', ({ a, b, want }) => {
    expect(subtractQuantities(a, b)).toBe(want);
  });

  test.each([
    { quantity: '500m', number: 0.5 },
    { quantity: '4Gi', number: 4 * 2 ** 30 },
    { quantity: '2e3', number: 2_000 },
    { quantity: '-1.5k', number: -1_500 },
    { quantity: 'much', number: undefined },
  ])('$quantity is the number $number', ({ quantity, number }) => {
    expect(quantityAsNumber(quantity)).toBe(number);
  });

  test.each([
    '',
    '.',
    '1 Gi',
    '1gi',
    '1KB',
    'Gi',
    'e3',
    '1e',
    '--1',
    '1e1000',
    'abc',
    Number.NaN,
    Number.POSITIVE_INFINITY,
  ])('%p is no quantity and equals only its own text', (text) => {
    expect(isQuantity(text)).toBe(false);
    expect(compareQuantities(text, '1')).toBeUndefined();
    expect(quantitiesEqual(text, text)).toBe(true);
    expect(quantitiesEqual(text, '0')).toBe(false);
  });

  test('of a million digits are none', () => {
    expect(isQuantity('1'.repeat(1_000_000))).toBe(false);
    expect(isQuantity('1'.repeat(900))).toBe(true);
  });

  test('order of whole numbers is order of quantities, whatever the suffix', () => {
    const suffix = fc.constantFrom('', 'm', 'k', 'Ki', 'Gi', 'E', 'e6');
    fc.assert(
      fc.property(fc.maxSafeInteger(), fc.maxSafeInteger(), suffix, (a, b, unit) => {
        expect(compareQuantities(`${a}${unit}`, `${b}${unit}`)).toBe(Math.sign(a - b) + 0);
      }),
    );
  });
});
