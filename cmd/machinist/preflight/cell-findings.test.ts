import { expect, test } from '@jest/globals';

import { CELL_REPLICA_LABEL } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Lease } from '../../../pkg/apis/wire.ts';
import { cellsFinding, replicaFindings, sameTargetFindings } from './cell-findings.ts';

function replica(holderIdentity: string, shards: number): Lease {
  return {
    metadata: { labels: { [CELL_REPLICA_LABEL]: String(shards) } },
    spec: { holderIdentity },
  } as unknown as Lease;
}

test.each([
  { live: [], want: ['ok no replica is running'] },
  { live: [replica('a', 16)], want: ['ok 1 replica runs with --cell-shards=16'] },
  {
    live: [replica('a', 16), replica('b', 4)],
    want: ['fail replica b has --cell-shards=4, not 16: a process with these flags takes no shard while it runs'],
  },
])('replicas: $want', ({ live, want }) => {
  expect(replicaFindings(live, 16).map(({ status, detail }) => `${status} ${detail}`)).toEqual(want);
});

test.each([
  { title: 'the first, without a Lease', holder: undefined, taken: ['b', 'c'] },
  { title: 'the one that holds the Lease', holder: 'c', taken: ['a', 'b'] },
  { title: 'the first, beside a Lease of none of them', holder: 'x', taken: ['b', 'c'] },
])('of cells with one target cluster, $title has it', ({ holder, taken }) => {
  const cells = ['c', 'a', 'b'].map((cell) => ({ cell, uid: 'u' }));

  const found = sameTargetFindings([...cells, { cell: 'alone', uid: 'v' }], () => holder);

  expect([...found.keys()].toSorted()).toEqual(taken);
});

test.each([
  { selected: { value: [] }, want: 'warn --cells=s selects no namespace' },
  { selected: { value: [{}] }, want: 'ok --cells=s selects 1 namespace' },
  { selected: { error: 'no' }, want: 'fail namespaces cannot be listed: no' },
])('selection: $want', ({ selected, want }) => {
  const { status, detail } = cellsFinding('s', selected);

  expect(`${status} ${detail}`).toBe(want);
});
