import { styleText } from 'node:util';

import { expect, test } from '@jest/globals';
import fc from 'fast-check';

import { printable } from './printable.ts';

test.each([
  { what: 'a cleared screen', text: 'quota\u001B[2J\u001B[Hgone', shows: 'quota^[[2J^[[Hgone' },
  { what: 'a title of the window', text: '\u001B]0;owned\u0007x', shows: '^[]0;owned^Gx' },
  { what: 'a line that is written over', text: 'bad\rError', shows: 'bad^MError' },
  { what: 'a sequence of one byte', text: 'a\u009B2J', shows: String.raw`a\u009b2J` },
  { what: 'text that is turned round', text: 'a\u202Eb', shows: String.raw`a\u202eb` },
  { what: 'hidden text', text: '\u001B[8mhidden', shows: '^[[8mhidden' },
  { what: 'lines, tabs and letters of the world', text: 'a\n\tbä日🙂', shows: 'a\n\tbä日🙂' },
])('$what is shown and not obeyed', ({ text, shows }) => {
  expect(printable(text)).toBe(shows);
});

const COLOURS = ['31', '32', '33', '39', '1', '22'].map((code) => `\u001B[${code}m`);

test.each(['red', 'green', 'yellow', 'bold'] as const)('what is %s stays so', (colour) => {
  const text = styleText(colour, 'x', { validateStream: false });

  expect(printable(text)).toBe(text);
});

test('whatever comes from outside, only lines, tabs and colours of our own reach the terminal', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const lines = COLOURS.reduce((rest, colour) => rest.replaceAll(colour, ''), printable(text));
      expect(lines.replaceAll(/[\n\t]/g, '')).not.toMatch(/\p{Cc}/u);
    }),
  );
});
