import { describe, expect, test } from '@jest/globals';

import { node } from '../../../../test/builders.ts';
import type { ClusterAPIMachine, MachineTaint } from '../api/machine.ts';
import type { Node, Taint } from '../../../apis/wire.ts';
import { nodePatch } from './node-patch.ts';

const machine = (metadata: object = {}, taints: readonly MachineTaint[] = []): ClusterAPIMachine => ({
  metadata: { name: 'm', namespace: 'ns', uid: 'u', resourceVersion: '1', creationTimestamp: '', ...metadata },
  spec: { clusterName: 'c', taints },
});

const SETTLED = {
  'cluster.x-k8s.io/cluster-name': 'c',
  'cluster.x-k8s.io/cluster-namespace': 'ns',
  'cluster.x-k8s.io/machine': 'm',
  'cluster.x-k8s.io/labels-from-machine': '',
  'cluster.x-k8s.io/annotations-from-machine': '',
  'cluster.x-k8s.io/taints-from-machine': '',
};

const settled = (change: { labels?: object; annotations?: object; taints?: Taint[] } = {}): Node =>
  node((n) => {
    n.metadata.labels = { ...change.labels };
    n.metadata.annotations = { ...SETTLED, ...change.annotations };
    n.spec = { ...n.spec, taints: change.taints ?? [] };
  });

test('a Node that shows all of it is not changed', () => {
  expect(nodePatch(settled(), machine(), { isInterruptible: false, isOutdated: undefined })).toBeUndefined();
});

test.each([
  { key: 'node-role.kubernetes.io/x', follows: true },
  { key: 'node-restriction.kubernetes.io/x', follows: true },
  { key: 'a.node-restriction.kubernetes.io/x', follows: true },
  { key: 'node.cluster.x-k8s.io/x', follows: true },
  { key: 'a.node.cluster.x-k8s.io/x', follows: true },
  { key: 'a.node-role.kubernetes.io/x', follows: false },
  { key: 'evilnode.cluster.x-k8s.io/x', follows: false },
  { key: 'kubernetes.io/hostname', follows: false },
  { key: 'plain', follows: false },
])('label $key of the Machine reaches the Node: $follows', ({ key, follows }) => {
  const change = nodePatch(settled(), machine({ labels: { [key]: 'v' } }), {
    isInterruptible: false,
    isOutdated: undefined,
  });

  const want = { labels: { [key]: 'v' }, annotations: { 'cluster.x-k8s.io/labels-from-machine': key } };
  expect(change).toEqual(follows ? { metadata: want } : undefined);
});

test('a label that left the Machine leaves the Node, one that somebody else put there stays', () => {
  const labels = { 'node-role.kubernetes.io/old': '', 'node-role.kubernetes.io/hand': '' };
  const annotations = {
    'cluster.x-k8s.io/labels-from-machine': 'node-role.kubernetes.io/gone,node-role.kubernetes.io/old',
  };

  expect(
    nodePatch(settled({ labels, annotations }), machine(), { isInterruptible: false, isOutdated: undefined }),
  ).toEqual({
    metadata: {
      labels: { 'node-role.kubernetes.io/old': null },
      annotations: { 'cluster.x-k8s.io/labels-from-machine': '' },
    },
  });
});

const INTERRUPTIBLE = 'cluster.x-k8s.io/interruptible';

test('owner, annotations and the mark of a machine that may be taken back are shown', () => {
  const owner = { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'MachineSet', name: 's', uid: 'x', controller: true };
  const metadata = { ownerReferences: [owner], annotations: { 'node.cluster.x-k8s.io/a': '1', other: '2' } };

  expect(nodePatch(settled(), machine(metadata), { isInterruptible: true, isOutdated: undefined })).toEqual({
    metadata: {
      labels: { 'cluster.x-k8s.io/interruptible': '' },
      annotations: {
        'node.cluster.x-k8s.io/a': '1',
        'cluster.x-k8s.io/owner-kind': 'MachineSet',
        'cluster.x-k8s.io/owner-name': 's',
        'cluster.x-k8s.io/annotations-from-machine': 'node.cluster.x-k8s.io/a',
        'cluster.x-k8s.io/labels-from-machine': INTERRUPTIBLE,
      },
    },
  });
});

test.each([
  { isInterruptible: false, noted: INTERRUPTIBLE, label: null, note: '' },
  { isInterruptible: undefined, noted: INTERRUPTIBLE, label: undefined, note: undefined },
  { isInterruptible: false, noted: '', label: undefined, note: undefined },
])(
  'the mark of a machine that may be taken back goes when it may not any more, and was put there: $isInterruptible, $noted',
  ({ isInterruptible, noted, label, note }) => {
    const labels = { [INTERRUPTIBLE]: '' };
    const annotations = { 'cluster.x-k8s.io/labels-from-machine': noted };

    const change = nodePatch(settled({ labels, annotations }), machine(), { isInterruptible, isOutdated: undefined });

    expect(change?.metadata?.labels?.[INTERRUPTIBLE]).toBe(label);
    expect(change?.metadata?.annotations?.['cluster.x-k8s.io/labels-from-machine']).toBe(note);
  },
);

test('what else is followed the flags say, by a part of the key', () => {
  const metadata = {
    labels: { 'example.com/team': 'a', other: 'b' },
    annotations: { 'example.com/note': 'c', x: 'd' },
  };
  const synced = { labels: [/^example\.com/u], annotations: [/note/u] };

  const change = nodePatch(settled(), machine(metadata), { isInterruptible: false, isOutdated: undefined }, synced);

  expect(change?.metadata).toEqual({
    labels: { 'example.com/team': 'a' },
    annotations: {
      'example.com/note': 'c',
      'cluster.x-k8s.io/labels-from-machine': 'example.com/team',
      'cluster.x-k8s.io/annotations-from-machine': 'example.com/note',
    },
  });
});

describe('taints', () => {
  const always: MachineTaint = { key: 'a', effect: 'NoSchedule', propagation: 'Always' };
  const joining: MachineTaint = { key: 'b', value: 'v', effect: 'NoExecute', propagation: 'OnInitialization' };
  const foreign: Taint = { key: 'f', effect: 'NoSchedule' };
  const note = (text: string): object => ({ 'cluster.x-k8s.io/taints-from-machine': text });

  test('of a Node that joins are all there, and it may be scheduled', () => {
    const joined = node((n) => {
      n.spec = { ...n.spec, taints: [foreign, { key: 'node.cluster.x-k8s.io/uninitialized', effect: 'NoSchedule' }] };
    });

    const change = nodePatch(joined, machine({}, [always, joining]), {
      isInterruptible: false,
      isOutdated: undefined,
    });

    expect(change?.spec?.taints).toEqual([
      foreign,
      { key: 'a', effect: 'NoSchedule' },
      { key: 'b', value: 'v', effect: 'NoExecute' },
    ]);
    expect(change?.metadata?.annotations).toMatchObject(note('a:NoSchedule'));
  });

  test.each<{ title: string; has: Taint[]; noted: string; wanted: MachineTaint[]; want: Taint[] | undefined }>([
    { title: 'only for joining is not put back', has: [], noted: '', wanted: [joining], want: undefined },
    {
      title: 'that always holds is put back',
      has: [],
      noted: 'a:NoSchedule',
      wanted: [always],
      want: [{ key: 'a', effect: 'NoSchedule' }],
    },
    {
      title: 'that left the Machine goes',
      has: [{ key: 'a', effect: 'NoSchedule' }, foreign],
      noted: 'a:NoSchedule',
      wanted: [],
      want: [foreign],
    },
    { title: 'of somebody else stays', has: [foreign], noted: '', wanted: [], want: undefined },
    {
      title: 'follows its value',
      has: [{ key: 'a', value: '1', effect: 'NoSchedule' }],
      noted: 'a:NoSchedule',
      wanted: [{ ...always, value: '2' }],
      want: [{ key: 'a', value: '2', effect: 'NoSchedule' }],
    },
  ])('a taint $title', ({ has, noted, wanted, want }) => {
    const change = nodePatch(settled({ taints: has, annotations: note(noted) }), machine({}, wanted), {
      isInterruptible: false,
      isOutdated: undefined,
    });

    expect(change?.spec?.taints).toEqual(want);
  });
});

const OUTDATED = { key: 'node.cluster.x-k8s.io/outdated-revision', effect: 'PreferNoSchedule' } as const;
test.each([
  { has: [], isOutdated: true, want: [OUTDATED] },
  { has: [OUTDATED], isOutdated: true, want: undefined },
  { has: [OUTDATED], isOutdated: false, want: [] },
  { has: [OUTDATED], isOutdated: undefined, want: undefined },
  { has: [], isOutdated: false, want: undefined },
])('a Node with taints $has whose Machine is outdated ($isOutdated) gets $want', ({ has, isOutdated, want }) => {
  const change = nodePatch(settled({ taints: has }), machine(), { isInterruptible: false, isOutdated });

  expect(change?.spec?.taints).toEqual(want);
});
