import { expect, test } from '@jest/globals';

import { changedFields, patchOf, type FieldPath } from './owned-fields.ts';

const OWNED: readonly FieldPath[] = [
  ['metadata', 'labels', 'a.example.com/x'],
  ['metadata', 'labels', 'y'],
  ['metadata', 'finalizers'],
  ['spec', 'id'],
  ['spec', 'bootstrap', 'name'],
];

function objectWith(metadata: object, spec?: object) {
  return {
    metadata: { name: 'o', uid: 'u', resourceVersion: '1', creationTimestamp: '', ...metadata },
    ...(spec && { spec }),
  };
}

test.each([
  { what: 'nothing has changed', before: objectWith({}), after: objectWith({}), patch: {} },
  {
    what: 'only fields of others have changed',
    before: objectWith({ labels: { other: '1' } }, { other: 1 }),
    after: objectWith({ annotations: { y: '1' } }, { other: 2 }),
    patch: {},
  },
  {
    what: 'fields are new',
    before: objectWith({}),
    after: objectWith({ labels: { 'a.example.com/x': '1' }, finalizers: ['f'] }, { id: 'i', bootstrap: { name: 'b' } }),
    patch: {
      metadata: { labels: { 'a.example.com/x': '1' }, finalizers: ['f'] },
      spec: { id: 'i', bootstrap: { name: 'b' } },
    },
  },
  {
    what: 'fields are gone, with all that was around them',
    before: objectWith({ labels: { 'a.example.com/x': '1', y: '2' } }, { id: 'i', bootstrap: { name: 'b' } }),
    after: objectWith({ labels: { y: '2' } }),
    patch: { metadata: { labels: { 'a.example.com/x': null } }, spec: { id: null, bootstrap: { name: null } } },
  },
  {
    what: 'one of several labels has changed',
    before: objectWith({ labels: { 'a.example.com/x': '1', y: '2' } }),
    after: objectWith({ labels: { 'a.example.com/x': '1', y: '3' } }),
    patch: { metadata: { labels: { y: '3' } } },
  },
  { what: 'a list is empty that was none', before: objectWith({}), after: objectWith({ finalizers: [] }), patch: {} },
  {
    what: 'the last of a list is gone',
    before: objectWith({ finalizers: ['f'] }),
    after: objectWith({ finalizers: [] }),
    patch: { metadata: { finalizers: [] } },
  },
  {
    what: 'what a looser schema stored is no object',
    before: objectWith({ labels: 'none' }, { bootstrap: null }),
    after: objectWith({ labels: { y: '1' } }, { bootstrap: { name: 'b' } }),
    patch: { metadata: { labels: { y: '1' } }, spec: { bootstrap: { name: 'b' } } },
  },
])('the patch holds what is owned and was changed, when $what', ({ before, after, patch }) => {
  expect(patchOf(after, changedFields(before, after, OWNED))).toEqual(patch);
});
