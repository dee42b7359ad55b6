import { describe, expect, test } from '@jest/globals';

import { node } from '../../../test/builders.ts';
import type { Node, NodeCondition } from '../../apis/wire.ts';
import { deletedOrChangedMs, wasDeletedUnready } from './deleted-node.ts';

const DELETED = '2026-01-01T00:10:00Z';
const [BEFORE, AFTER] = ['2026-01-01T00:09:59Z', '2026-01-01T00:10:01Z'];

const deletedWith = (condition: NodeCondition): Node =>
  node((n) => {
    n.metadata.deletionTimestamp = DELETED;
    n.status.conditions = [condition];
  });

describe('a deleted Node', () => {
  test.each([
    { status: 'True', since: BEFORE, want: false },
    { status: 'True', since: DELETED, want: true },
    { status: 'True', since: AFTER, want: true },
    { status: 'True', since: undefined, want: false },
    { status: 'Unknown', since: BEFORE, want: true },
    { status: 'False', since: AFTER, want: true },
  ])('of which Ready is $status since $since was deleted while it was not ready: $want', ({ status, since, want }) => {
    const condition = { type: 'Ready', status, ...(since !== undefined && { lastTransitionTime: since }) };

    expect(wasDeletedUnready(deletedWith(condition))).toBe(want);
  });

  test('that does not say whether it is ready was deleted while it was not', () => {
    expect(wasDeletedUnready(deletedWith({ type: 'NetworkUnavailable', status: 'False' }))).toBe(true);
  });

  test.each([
    { since: BEFORE, want: DELETED },
    { since: AFTER, want: AFTER },
    { since: undefined, want: DELETED },
  ])('of which Ready changed at $since is as it is since $want', ({ since, want }) => {
    const condition = { type: 'Ready', status: 'False', ...(since !== undefined && { lastTransitionTime: since }) };

    expect(deletedOrChangedMs(deletedWith(condition))).toBe(Date.parse(want));
  });
});
