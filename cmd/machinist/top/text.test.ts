import { describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';

import { cleaned, cut, fitted, padded, painted, plain, widthOf, wrapped } from './text.ts';

/** Texts as they come from outside: wide, combined and invisible characters among them. */
const TEXT = fc.string({ unit: 'grapheme', maxLength: 120 }).map(cleaned);
const WIDTH = fc.integer({ min: 2, max: 200 });

test('nothing in a text moves the cursor, or turns text round', () => {
  expect(cleaned('a\u001B[2Jb\r\nc\td\u202Ee\u009Bf')).toBe('a [2Jb c d e f');
  expect(cleaned('pool-1 läuft 机')).toBe('pool-1 läuft 机');
});

describe('a text', () => {
  test.each([
    { text: 'machine', width: 7, want: 'machine' },
    { text: 'machine', width: 5, want: 'mach…' },
    { text: '机器机器', width: 8, want: '机器机器' },
    { text: '机器机器', width: 6, want: '机器…' },
    { text: 'e\u0301e\u0301e\u0301', width: 2, want: 'e\u0301…' },
    { text: 'x', width: 0, want: '' },
  ])('$text in $width columns is $want', ({ text, width, want }) => {
    expect(cut(text, width)).toBe(want);
  });

  test('is padded on the side that is asked for', () => {
    expect(padded('7', 3, 'right')).toBe('  7');
    expect(padded('机', 3)).toBe('机 ');
  });

  test('takes exactly the columns that it is padded to, and no more than it is cut to', () => {
    fc.assert(
      fc.property(TEXT, WIDTH, (text, width) => {
        expect(widthOf(cut(text, width))).toBeLessThanOrEqual(width);
        expect(widthOf(padded(text, width))).toBe(width);
      }),
    );
  });

  test('is broken into lines that fit, without losing a word', () => {
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[a-z机é]{1,30}$/), { maxLength: 30 }), WIDTH, (words, width) => {
        const lines = wrapped(words.join(' '), width, width > 10 ? '    ' : '');

        for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(width);
        expect(lines.join('').replaceAll(' ', '')).toBe(words.join(''));
      }),
    );
  });

  test.each([
    { what: 'without a space', text: '机'.repeat(8_000) },
    { what: 'of words', text: 'läuft '.repeat(1_500) },
    { what: 'of marks that take no column', text: `a ${'\u0301 '.repeat(4_000)}` },
  ])('of 8,000 characters $what is broken with each of them measured once', ({ text }) => {
    // Whatever measures a text takes it apart first.
    const spy = jest.spyOn(Intl.Segmenter.prototype, 'segment');

    const lines = wrapped(text, 80, '    ');
    const measured = spy.mock.calls.reduce((sum, [part]) => sum + part.length, 0);
    spy.mockRestore();

    expect(lines.join('').replaceAll(' ', '')).toBe(text.replaceAll(' ', ''));
    expect(measured).toBeGreaterThan(text.length);
    expect(measured).toBeLessThan(3 * text.length);
  });

  test.each([
    { width: 4, indent: '      ', want: ['aa b', 'bbbb', 'cc'] },
    { width: 1, indent: '', want: ['a', 'a', 'b', 'b', 'b', 'b', 'b', 'c', 'c'] },
  ])('is broken in $width columns, too', ({ width, indent, want }) => {
    expect(wrapped('aa bbbbb cc', width, indent)).toEqual(want);
    expect(wrapped('机机', 1)).toEqual(['机', '机']);
  });

  test('continues below where its value begins', () => {
    expect(wrapped('Message: the drain waits for a pod', 20, '         ')).toEqual([
      'Message: the drain',
      '         waits for a',
      '         pod',
    ]);
  });
});

test('a line is cut across its parts, and painted only where colours are wanted', () => {
  const line = [{ text: 'one ', tone: 'attention' as const }, { text: 'two three' }, { text: ' four' }];

  expect(plain(fitted(line, 9))).toBe('one two …');
  expect(plain(fitted(line, 3))).toBe('on…');
  expect(painted(line, false)).toBe('one two three four');
  expect(painted(line, true)).toBe('\u001B[31mone \u001B[39mtwo three four');
});
