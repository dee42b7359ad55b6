import { expect, test } from '@jest/globals';

import { pinned } from './terminal.ts';

/** What a terminal shows of what was written to it. */
function shownOf(text: string): readonly string[] {
  return text.split('\n').map((line) => line.split('\r\u001B[2K').at(-1) ?? '');
}

test('a pinned line stays below those that are printed, until it is replaced or removed', () => {
  let written = '';
  const { out, err, pin } = pinned((text) => (written += text));

  out('a');
  pin('50 %');
  expect(shownOf(written)).toEqual(['a', '50 %']);
  out('b');
  err('c');
  expect(shownOf(written)).toEqual(['a', 'b', 'c', '50 %']);
  pin('75 %');
  expect(shownOf(written)).toEqual(['a', 'b', 'c', '75 %']);
  pin('');
  out('d');
  expect(shownOf(written)).toEqual(['a', 'b', 'c', 'd', '']);
});

test('what comes from outside only shows, in every line', () => {
  let written = '';
  const { out, err, pin } = pinned((text) => (written += text));

  for (const print of [out, err, pin]) print('\u001B[31mred\u001B[2J');

  expect(shownOf(written)).toEqual(['^[[31mred^[[2J', '^[[31mred^[[2J', '^[[31mred^[[2J']);
});

test('nothing is written for a line that is pinned already', () => {
  const written: string[] = [];
  const { pin } = pinned((text) => written.push(text));

  pin('x');
  pin('x');
  pin('');
  pin('');

  expect(written).toHaveLength(2);
});
