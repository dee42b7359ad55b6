import { describe, expect, test } from '@jest/globals';

import { charactersOf, hexOf, type Random, secureRandom, uuidOf } from './random.ts';

describe('random', () => {
  test('the source of production stays within [0, 1) and does not repeat itself', () => {
    const drawn = Array.from({ length: 1_000 }, secureRandom);

    expect(drawn.every((value) => value >= 0 && value < 1)).toBe(true);
    expect(new Set(drawn).size).toBe(1_000);
  });

  test.each([
    { drawn: 0, want: 'a' },
    { drawn: 0.5, want: 'b' },
    { drawn: 1 - Number.EPSILON, want: 'c' },
  ])('of three characters $drawn draws $want', ({ drawn, want }) => {
    expect(charactersOf(() => drawn, 'abc', 2)).toBe(want.repeat(2));
  });

  test('a UUID is of version 4, and the same for the same draws', () => {
    const draws = (): Random => {
      let n = 0;
      return () => (n = (n + 0.37) % 1);
    };

    expect(uuidOf(secureRandom)).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
    expect(uuidOf(draws())).toBe(uuidOf(draws()));
    expect(hexOf(() => 0, 4)).toBe('0000');
  });
});
