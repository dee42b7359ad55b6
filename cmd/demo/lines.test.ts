import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { wrapped } from '../wrapped.ts';
import { fitted } from './lines.ts';
import { thingsToTry } from './things-to-try.ts';

describe('a line of the demo', () => {
  test.each([
    { line: 'short', width: 80, lines: ['short'] },
    { line: 'a line without a terminal', width: undefined, lines: ['a line without a terminal'] },
    { line: '  one two three', width: 24, lines: ['  one two three'] },
    {
      line: '   1.0 s  waiting for the first machine',
      width: 33,
      lines: ['   1.0 s  waiting for the first', `${' '.repeat(12)}machine`],
    },
    {
      line: `a ${'x'.repeat(60)} b`,
      width: 40,
      lines: ['a', `${' '.repeat(12)}${'x'.repeat(60)}`, `${' '.repeat(12)}b`],
    },
  ])('"$line" is broken between words at $width columns', ({ line, width, lines }) => {
    expect(wrapped(line, width, 12)).toEqual(lines);
  });

  test('never loses a word, and is never wider than the terminal if its words are not', () => {
    const words = fc.array(fc.stringMatching(/^[a-z]{1,20}$/), { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(words, fc.integer({ min: 40, max: 120 }), (all, width) => {
        const lines = wrapped(all.join(' '), width, 12);
        expect(lines.join(' ').trim().split(/\s+/)).toEqual(all);
        expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width);
      }),
    );
  });
});

describe('the list of things to try', () => {
  const text = thingsToTry({
    directory: '.demo',
    driver: 'local',
    api: 'cluster-api',
    autoscaler: false,
    machines: 3,
    manager: 'http://127.0.0.1:1',
  });
  /** As a shell reads it: without line breaks that are escaped. */
  const commandsIn = (list: string): readonly string[] =>
    list
      .replaceAll(/ \\\n +/g, ' ')
      .split('\n')
      .flatMap((line) => /^ {2}(\S.*?)(?: {2,}\S.*)?$/.exec(line)?.[1] ?? []);

  test('stays as it is where it has room, and where no person reads', () => {
    expect(fitted(text, 200)).toBe(text);
    expect(fitted(text, undefined)).toBe(text);
  });

  test.each([80, 60])('has the same commands at %d columns, and is not wider but for a quoted word', (width) => {
    const narrow = fitted(text, width);

    expect(commandsIn(narrow)).toEqual(commandsIn(text));
    const wide = narrow.split('\n').filter((line) => line.length > width);
    expect(wide.filter((line) => !/'[^']{30,}'|\S{40}/.test(line))).toEqual([]);
  });
});
