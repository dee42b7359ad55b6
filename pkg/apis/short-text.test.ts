import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { LONGEST_TEXT, shortText } from './short-text.ts';

describe('a text from outside', () => {
  test('stays as it is while it is short', () => {
    expect(shortText('x'.repeat(LONGEST_TEXT))).toBe('x'.repeat(LONGEST_TEXT));
  });

  test('loses its middle, and says how much', () => {
    const short = shortText(`begin ${'x'.repeat(24_000)} end`);

    expect(short).toMatch(/^begin x+ … \(23\d\d\d characters omitted\) … x+ end$/);
  });

  test('is never longer than asked for, well-formed, and not cut again', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 900 }), fc.integer({ min: 80, max: 600 }), (text, longest) => {
        const short = shortText(text.repeat(3), longest);

        expect(short.length).toBeLessThanOrEqual(longest);
        expect(short.isWellFormed()).toBe(true);
        expect(shortText(short, longest)).toBe(short);
      }),
    );
  });
});
