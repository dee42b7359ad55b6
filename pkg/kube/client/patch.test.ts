import { expect, test } from '@jest/globals';

import { machine } from '../../../test/builders.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { mergePatch, mergePatchIfUnchanged, statusPatch, strategicPatch } from './patch.ts';

const base: Pick<Machine, 'metadata' | 'status'> = machine((m) => {
  m.metadata.uid = 'u';
  m.metadata.resourceVersion = '7';
});
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
    patch: statusPatch(base, { lastKnownState: 'x' }),
    body: { metadata: { uid: 'u', resourceVersion: '7' }, status: { lastKnownState: 'x' } },
  },
  { kind: 'a strategic patch', patch: strategicPatch(base, change), body: { metadata: { ...labelled, uid: 'u' } } },
])('$kind names the object that it means', ({ patch, body }) => {
  expect(patch.body).toEqual(body);
});
