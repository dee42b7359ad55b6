import { expect, test } from '@jest/globals';

import { strategicallyPatched } from './strategic-merge-patch.ts';

const LISTS = { finalizers: 'set', conditions: { key: 'type' } } as const;
const type = (name: string, more: object = {}): object => ({ type: name, ...more });

test.each([
  {
    what: 'entries by their key, those of the patch before new ones of the list',
    value: { conditions: [type('a'), type('b')] },
    patch: { conditions: [type('b', { status: 'x' }), type('c')] },
    want: { conditions: [type('a'), type('b', { status: 'x' }), type('c')] },
  },
  {
    what: 'an entry that goes',
    value: { conditions: [type('a'), type('b')] },
    patch: { conditions: [type('a', { $patch: 'delete' })] },
    want: { conditions: [type('b')] },
  },
  {
    what: 'a list that is replaced',
    value: { conditions: [type('a')] },
    patch: { conditions: [type('z'), { $patch: 'replace' }] },
    want: { conditions: [type('z')] },
  },
  {
    what: 'plain values, each once',
    value: { finalizers: ['a', 'b'] },
    patch: { finalizers: ['b', 'c'] },
    want: { finalizers: ['a', 'b', 'c'] },
  },
  {
    what: 'a plain value that goes',
    value: { finalizers: ['a', 'b'] },
    patch: { '$deleteFromPrimitiveList/finalizers': ['a'] },
    want: { finalizers: ['b'] },
  },
  { what: 'a list without a strategy', value: { taints: [1] }, patch: { taints: [2] }, want: { taints: [2] } },
  { what: 'null', value: { a: { b: 1, c: 2 } }, patch: { a: { b: null } }, want: { a: { c: 2 } } },
  {
    what: 'an object that is replaced',
    value: { a: { b: 1 } },
    patch: { a: { $patch: 'replace', c: 2 } },
    want: { a: { c: 2 } },
  },
])('a strategic merge patch: $what', ({ value, patch, want }) => {
  expect(strategicallyPatched(value, patch, LISTS)).toEqual(want);
});
