import { expect, test } from '@jest/globals';

import { mergePatch, mergePatchIfUnchanged, statusPatch, strategicPatch } from './patch.ts';

const base = { metadata: { uid: 'u', resourceVersion: '7' } };
const change = { metadata: { labels: { a: 'b' } } };
const labelled = { labels: { a: 'b' } };

test.each([
  { kind: 'a patch', patch: mergePatch(base, change), body: { metadata: { ...labelled, uid: 'u' } } },
  {
    kind: 'a patch that follows from what was read',
    patch: mergePatchIfUnchanged(base, change),
    body: { metadata: { ...labelled, uid: 'u', resourceVersion: '7' } },
  },
  // The server ignores a wrong uid in a patch of a custom resource's status.
  {
    kind: 'a patch of a status',
    patch: statusPatch(base, { phase: 'x' }),
    body: { metadata: { uid: 'u', resourceVersion: '7' }, status: { phase: 'x' } },
  },
  { kind: 'a strategic patch', patch: strategicPatch(base, change), body: { metadata: { ...labelled, uid: 'u' } } },
])('$kind names the object that it means', ({ patch, body }) => {
  expect(patch.body).toEqual(body);
});
