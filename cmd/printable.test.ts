import { expect, test } from '@jest/globals';
import fc from 'fast-check';

import { paint } from './paint.ts';
import { printable } from './printable.ts';

test.each([
  { what: 'a cleared screen', text: 'quota\u001B[2J\u001B[Hgone', shows: 'quota^[[2J^[[Hgone' },
  { what: 'a title of the window', text: '\u001B]0;owned\u0007x', shows: '^[]0;owned^Gx' },
  { what: 'a line that is written over', text: 'bad\rError', shows: 'bad^MError' },
  { what: 'a sequence of one byte', text: 'a\u009B2J', shows: String.raw`a\u009b2J` },
  { what: 'text that is turned round', text: 'a\u202Eb', shows: String.raw`a\u202eb` },
  { what: 'a colour', text: 'quota \u001B[31mred\u001B[1m', shows: 'quota ^[[31mred^[[1m' },
  { what: 'hidden text', text: '\u001B[8mhidden', shows: '^[[8mhidden' },
  { what: 'lines, tabs and letters of the world', text: 'a\n\tbä日🙂', shows: 'a\n\tbä日🙂' },
])('$what is shown and not obeyed', ({ text, shows }) => {
  expect(printable(text)).toBe(shows);
});

test.each([
  { colour: 'red', code: 31 },
  { colour: 'green', code: 32 },
  { colour: 'yellow', code: 33 },
] as const)('what is painted $colour is so, and what it says of colours is only shown', ({ colour, code }) => {
  expect(printable(`a ${paint(colour, 'b \u001B[39mc\u001B[32m')} d`)).toBe(
    `a \u001B[${code}mb ^[[39mc^[[32m\u001B[39m d`,
  );
});

test('whatever comes from outside, only lines and tabs reach the terminal', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(printable(text).replaceAll(/[\n\t]/g, '')).not.toMatch(/\p{Cc}/u);
    }),
  );
});
