import { expect, test } from '@jest/globals';

import { textLine } from './text-line.ts';

const line = (fields: Record<string, unknown>): string =>
  textLine(JSON.stringify({ level: 'warn', time: '2026-01-01T00:00:00.000Z', ...fields, msg: 'did it' }));
const BEGIN = '2026-01-01T00:00:00.000Z WARN  did it';

test.each([
  { what: 'no fields', fields: {}, want: '' },
  { what: 'a word', fields: { machine: 'ns/m-1' }, want: ' machine=ns/m-1' },
  { what: 'a number', fields: { ms: 12 }, want: ' ms=12' },
  { what: 'a text', fields: { why: 'no "quota" left' }, want: String.raw` why="no \"quota\" left"` },
  { what: 'several lines', fields: { why: 'a\nb\u001b[2J' }, want: String.raw` why="a\nb\u001b[2J"` },
  { what: 'a list', fields: { names: ['a', 'b'] }, want: ' names=["a","b"]' },
  { what: 'nothing', fields: { node: '' }, want: ' node=""' },
  {
    what: 'an error',
    fields: { err: { type: 'ApiError', message: 'nodes is forbidden', code: '403' } },
    want: ' err="nodes is forbidden" err.code=403',
  },
  {
    what: 'the stack of one',
    fields: { err: { type: 'Error', message: 'oops', stack: 'Error: oops\n    at f' }, ms: 1 },
    want: ' err=oops ms=1\nError: oops\n    at f',
  },
])('$what is written for people in one line', ({ fields, want }) => {
  expect(line(fields)).toBe(`${BEGIN}${want}\n`);
});
