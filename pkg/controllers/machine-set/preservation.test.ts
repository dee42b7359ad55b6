import { expect, test } from '@jest/globals';

import {
  LAST_APPLIED_NODE_PRESERVE_ANNOTATION,
  MACHINE_NAME_LABEL,
  PRESERVE_ANNOTATION,
} from '../../apis/machine/v1alpha1/labels.ts';
import { machine, node } from '../../../test/builders.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import type { Target } from '../../kube/targets/targets.ts';
import { MACHINE_INDEXES } from '../../operator/indexes/machine-indexes.ts';
import { isKeptWhenFailed } from '../replicas/machine-state.ts';
import { nextExpiryInMs, nodeOf } from './preservation.ts';

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

test.each([
  { what: 'none', label: '', shows: '', found: undefined },
  { what: 'its own', label: 'n-1', shows: '', found: 'n-1' },
  { what: 'that of another machine', label: 'n-1', shows: 'm-2', found: 'missing' },
  { what: 'one that does not exist', label: 'n-2', shows: '', found: 'missing' },
])('the Node of a machine that names $what is $found', ({ label, shows, found }) => {
  const named = (name: string, labels: Record<string, string>) =>
    machine((m) => void Object.assign(m.metadata, { name, uid: name, labels }));
  const mine = named('m-1', label === '' ? {} : { node: label });
  const one = node((n) => {
    n.metadata.name = 'n-1';
    if (shows !== '') n.metadata.labels[MACHINE_NAME_LABEL] = shows;
  });
  const targets = { of: () => ({ nodes: new MemoryInformer([one]) }) as unknown as Target };
  const of = nodeOf({ targets, machines: new MemoryInformer([mine, named('m-2', {})], MACHINE_INDEXES) }, mine);

  expect(typeof of === 'object' ? of.metadata.name : of).toBe(found);
});
