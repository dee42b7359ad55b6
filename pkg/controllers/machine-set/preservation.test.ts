import { expect, test } from '@jest/globals';

import { LAST_APPLIED_NODE_PRESERVE_ANNOTATION, PRESERVE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import { machine, node } from '../../../test/builders.ts';
import { isKeptWhenFailed, nextExpiryInMs } from './preservation.ts';

const NOW = Date.parse('2026-01-02T00:00:00Z');
const PAST = '2026-01-01T00:00:00Z';
const FUTURE = '2026-01-03T00:00:00Z';

test.each([
  { title: 'an expiry in the future', until: FUTURE, kept: true },
  { title: 'an expiry in the past, whatever is annotated', until: PAST, own: 'now', kept: false },
  { title: 'no annotation', kept: false },
  { title: 'now', own: 'now', kept: true },
  { title: 'when-failed', own: 'when-failed', kept: true },
  { title: 'auto-preserved', own: 'auto-preserved', kept: true },
  { title: 'false', own: 'false', kept: false },
  { title: 'its own value, as long as the Node never had one', own: 'now', ofNode: '', kept: true },
  { title: 'the value of the Node before its own', own: 'now', ofNode: 'false', kept: false },
  { title: 'the value of the Node alone', ofNode: 'now', kept: true },
  { title: 'a value that was taken from the Node', own: 'now', ofNode: '', lastOfNode: 'now', kept: false },
  { title: 'its own value, when its Node cannot be found', own: 'now', ofNode: 'missing', kept: true },
  { title: 'the last value of a Node that cannot be found', ofNode: 'missing', lastOfNode: 'when-failed', kept: true },
  { title: 'a value of the Node that nobody understands', own: 'now', ofNode: 'nwo', kept: false },
])('a failed machine with $title is kept: $kept', ({ until, own, ofNode, lastOfNode, kept }) => {
  const m = machine((built) => {
    if (until !== undefined) built.status.currentStatus.preserveExpiryTime = until;
    if (own !== undefined) built.metadata.annotations[PRESERVE_ANNOTATION] = own;
    if (lastOfNode !== undefined) built.metadata.annotations[LAST_APPLIED_NODE_PRESERVE_ANNOTATION] = lastOfNode;
  });
  const n = node((built) => {
    if (ofNode) built.metadata.annotations[PRESERVE_ANNOTATION] = ofNode;
  });

  expect(isKeptWhenFailed(m, ofNode === undefined || ofNode === 'missing' ? ofNode : n, NOW)).toBe(kept);
});

test('a set looks again when the first of its kept machines has had its time', () => {
  const kept = (phase: 'Failed' | 'Running', until: string) =>
    machine((m) => {
      m.status.currentStatus = { phase, preserveExpiryTime: until };
    });

  const machines = [kept('Failed', FUTURE), kept('Failed', '2026-01-05T00:00:00Z'), kept('Running', PAST)];

  expect(nextExpiryInMs(machines, NOW)).toBe(Date.parse(FUTURE) - NOW);
  expect(nextExpiryInMs([kept('Failed', PAST), kept('Running', FUTURE)], NOW)).toBeUndefined();
});
