import { expect, test } from '@jest/globals';

import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { ClusterAPICluster } from '../api/cluster.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import type { Node, VolumeAttachment } from '../../../apis/wire.ts';
import { wakeClusterAPI, wakeOfNodes } from './wake.ts';
import { CLUSTER_API_MACHINE_INDEXES } from './kinds.ts';

const machine = (name: string, providerID?: string, resourceVersion = '1'): ClusterAPIMachine => ({
  metadata: { name, namespace: 'ns', uid: `uid-of-${name}`, resourceVersion, creationTimestamp: '' },
  spec: { clusterName: 'c', ...(providerID !== undefined && { providerID }) },
});

/** Whom a change wakes, without the one that changed. */
function woken(change: (machines: MemoryInformer<ClusterAPIMachine>) => void): readonly string[] {
  const before = [machine('m', 'sim:///1'), machine('copy', 'sim:///1'), machine('other', 'sim:///2'), machine('new')];
  const machines = new MemoryInformer(before, CLUSTER_API_MACHINE_INDEXES);
  const keys: string[] = [];
  const queue = { add: (key: string) => void keys.push(key), addAfter: () => undefined };
  const clusters = new MemoryInformer<ClusterAPICluster>();
  const secrets = new MemoryInformer<KubeObject>();
  wakeClusterAPI({ machines, clusters, secrets, nodes: undefined, volumeAttachments: undefined }, queue);
  change(machines);
  return keys.slice(1).toSorted();
}

test.each<{ what: string; change: Parameters<typeof woken>[0]; want: readonly string[] }>([
  { what: 'is removed', change: (all) => all.remove('ns/m'), want: ['Machine/ns/copy'] },
  {
    what: 'has found its Node',
    change: (all) => all.put({ ...machine('m', 'sim:///1', '2'), status: { nodeRef: { name: 'n' } } }),
    want: ['Machine/ns/copy'],
  },
  {
    what: 'gets another ID',
    change: (all) => all.put(machine('m', 'sim:///2', '2')),
    want: ['Machine/ns/copy', 'Machine/ns/other'],
  },
  { what: 'gets an ID', change: (all) => all.put(machine('new', 'sim:///2', '2')), want: ['Machine/ns/other'] },
  { what: 'is added', change: (all) => all.put(machine('third', 'sim:///2')), want: ['Machine/ns/other'] },
  { what: 'has none', change: (all) => all.remove('ns/new'), want: [] },
  { what: 'has one of its own', change: (all) => all.remove('ns/other'), want: [] },
])('a Machine that $what wakes those with its provider ID: $want', ({ change, want }) => {
  expect(woken(change)).toEqual(want);
});

// promise: cluster-api/deletion/control-plane-goes-node
test.each([
  {
    what: 'goes',
    change: (all: MemoryInformer<ClusterAPIMachine>) => all.put(member({ deletionTimestamp: 'now' }, '2')),
  },
  { what: 'is gone', change: (all: MemoryInformer<ClusterAPIMachine>) => all.remove('ns/member') },
])('a Machine of the control plane that $what wakes those of its Cluster that go', ({ change }) => {
  const going = { ...machine('going'), metadata: { ...machine('going').metadata, deletionTimestamp: 'now' } };
  const other = { ...going, metadata: { ...going.metadata, name: 'other' }, spec: { clusterName: 'd' } };
  const machines = new MemoryInformer([member(), going, other, machine('stays')], CLUSTER_API_MACHINE_INDEXES);
  const keys: string[] = [];
  const queue = { add: (key: string) => void keys.push(key), addAfter: () => undefined };
  const clusters = new MemoryInformer<ClusterAPICluster>();
  const secrets = new MemoryInformer<KubeObject>();
  wakeClusterAPI({ machines, clusters, secrets, nodes: undefined, volumeAttachments: undefined }, queue);

  change(machines);

  expect(keys.slice(1)).toEqual(['Machine/ns/going']);
});

function member(more: object = {}, resourceVersion = '1'): ClusterAPIMachine {
  const { metadata, spec } = machine('member', undefined, resourceVersion);
  const labels = { 'cluster.x-k8s.io/control-plane': '' };
  return { metadata: { ...metadata, labels, ...more }, ...(spec && { spec }) };
}

/** A queue beside the caches of a manager; `enqueued` is what a change enqueues. */
function world() {
  const of = (
    name: string,
    { metadata = {}, ...more }: Partial<Record<'metadata' | 'spec' | 'status', object>>,
  ): ClusterAPIMachine => {
    const one = machine(name);
    return {
      ...one,
      ...more,
      metadata: { ...one.metadata, ...metadata },
      spec: { ...one.spec, ...more.spec },
    };
  };
  const bootstrap = { dataSecretName: 'data' };
  const machines = new MemoryInformer<ClusterAPIMachine>(
    [
      of('starts', { spec: { bootstrap } }),
      of('started', { spec: { bootstrap }, status: { initialization: { infrastructureProvisioned: true } } }),
      of('elsewhere', { metadata: { namespace: 'other' }, spec: { bootstrap } }),
      of('by-name', { status: { nodeRef: { name: 'n' } } }),
      of('going', {
        metadata: { deletionTimestamp: 'now' },
        spec: { clusterName: 'd' },
        status: { nodeRef: { name: 'n' } },
      }),
      of('by-id', { spec: { clusterName: 'd', providerID: 'sim:///new' } }),
      of('by-former-id', { spec: { clusterName: 'd', providerID: 'sim:///old' } }),
    ],
    CLUSTER_API_MACHINE_INDEXES,
  );
  const clusters = new MemoryInformer<ClusterAPICluster>([object('c')]);
  const secrets = new MemoryInformer<KubeObject>([object('data')]);
  const nodes = new MemoryInformer<Node>([nodeWith('sim:///old')]);
  const volumeAttachments = new MemoryInformer<VolumeAttachment>([attachment('1')]);
  const enqueued: string[] = [];
  const queue = {
    add: (key: string, priority = 'normal') => void enqueued.push(`${key} ${priority}`),
    addAfter: () => undefined,
  };
  wakeClusterAPI({ machines, clusters, secrets, nodes, volumeAttachments }, queue);
  return { machines, clusters, secrets, nodes, volumeAttachments, enqueued };
}

function object(name: string, more: object = {}): KubeObject {
  return {
    metadata: { name, namespace: 'ns', uid: `uid-of-${name}`, resourceVersion: '1', creationTimestamp: '', ...more },
  };
}

const nodeWith = (providerID: string, resourceVersion = '1'): Node => ({
  metadata: { name: 'n', uid: 'uid-of-n', resourceVersion, creationTimestamp: '' },
  spec: { providerID },
});

const attachment = (resourceVersion: string): VolumeAttachment =>
  ({
    metadata: { name: 'va', uid: 'uid-of-va', resourceVersion, creationTimestamp: '' },
    spec: { nodeName: 'n' },
  }) as never;

test.each<{ what: string; change: (it: ReturnType<typeof world>) => void; want: readonly string[] }>([
  {
    what: 'a Cluster',
    change: ({ clusters }) => clusters.put(object('c', { resourceVersion: '2' })),
    want: ['Cluster/ns/c normal', 'Machine/ns/by-name normal', 'Machine/ns/started normal', 'Machine/ns/starts normal'],
  },
  {
    what: 'a Cluster that is removed',
    change: ({ clusters }) => clusters.remove('ns/c'),
    want: ['Cluster/ns/c normal', 'Machine/ns/by-name normal', 'Machine/ns/started normal', 'Machine/ns/starts normal'],
  },
  {
    what: 'a Secret with bootstrap data, of the Machines that have not started',
    change: ({ secrets }) => secrets.put(object('data', { resourceVersion: '2' })),
    want: ['Machine/ns/starts normal'],
  },
  {
    what: 'a Secret with bootstrap data that is removed',
    change: ({ secrets }) => secrets.remove('ns/data'),
    want: ['Machine/ns/starts normal'],
  },
  {
    what: 'a Node, of the Machines that name it, and of those with its former and present provider ID',
    change: ({ nodes }) => nodes.put(nodeWith('sim:///new', '2')),
    want: [
      'Machine/ns/by-former-id normal',
      'Machine/ns/by-id normal',
      'Machine/ns/by-name normal',
      'Machine/ns/going high',
    ],
  },
  {
    what: 'a Node that is removed',
    change: ({ nodes }) => nodes.remove('n'),
    want: ['Machine/ns/by-former-id normal', 'Machine/ns/by-name normal', 'Machine/ns/going high'],
  },
  {
    what: 'a VolumeAttachment, of the Machines that are being deleted',
    change: ({ volumeAttachments }) => volumeAttachments.put(attachment('2')),
    want: ['Machine/ns/going high'],
  },
  {
    what: 'a VolumeAttachment that is removed',
    change: ({ volumeAttachments }) => volumeAttachments.remove('va'),
    want: ['Machine/ns/going high'],
  },
  {
    what: 'a Cluster that is new',
    change: ({ clusters }) => clusters.put(object('d')),
    want: [
      'Cluster/ns/d normal',
      'Machine/ns/by-former-id normal',
      'Machine/ns/by-id normal',
      'Machine/ns/going normal',
    ],
  },
  {
    what: 'a Secret with bootstrap data that is new',
    change: ({ secrets }) => {
      secrets.remove('ns/data');
      secrets.put(object('data', { uid: 'another' }));
    },
    want: ['Machine/ns/starts normal', 'Machine/ns/starts normal'],
  },
  {
    what: 'a Node that is new, and a VolumeAttachment',
    change: ({ nodes, volumeAttachments, enqueued }) => {
      nodes.remove('n');
      volumeAttachments.remove('va');
      enqueued.length = 0;
      nodes.put(nodeWith('sim:///new'));
      volumeAttachments.put(attachment('1'));
    },
    want: ['Machine/ns/by-id normal', 'Machine/ns/by-name normal', 'Machine/ns/going high', 'Machine/ns/going high'],
  },
  {
    what: 'a Machine, whose Cluster may wait for it',
    change: ({ machines }) => machines.remove('ns/starts'),
    want: ['Cluster/ns/c normal', 'Machine/ns/starts normal'],
  },
  {
    what: 'a Machine whose Cluster does not exist',
    change: ({ machines }) => machines.remove('ns/by-id'),
    want: ['Machine/ns/by-id normal'],
  },
])('a change enqueues Machines and Clusters: $what', ({ change, want }) => {
  const it = world();

  change(it);

  expect(it.enqueued.toSorted()).toEqual(want);
});

const goingIn = (namespace: string): ClusterAPIMachine => {
  const { metadata, ...rest } = machine('going');
  return { ...rest, metadata: { ...metadata, namespace, deletionTimestamp: 'now' } };
};

test.each<{ what: string; going?: ClusterAPIMachine; change: (machines: MemoryInformer<ClusterAPIMachine>) => void }>([
  { what: 'of the control plane that stays', change: (machines) => machines.put(member({}, '2')) },
  { what: 'that is no member of the control plane', change: (machines) => machines.remove('ns/worker') },
  {
    what: 'of the control plane of a Cluster of the same name elsewhere',
    going: goingIn('other'),
    change: (machines) => machines.remove('ns/member'),
  },
])('a Machine $what wakes none that is being deleted', ({ going = goingIn('ns'), change }) => {
  const machines = new MemoryInformer([member(), going, machine('worker')], CLUSTER_API_MACHINE_INDEXES);
  const keys: string[] = [];
  const queue = { add: (key: string) => void keys.push(key), addAfter: () => undefined };
  const clusters = new MemoryInformer<ClusterAPICluster>();
  const secrets = new MemoryInformer<KubeObject>();
  wakeClusterAPI({ machines, clusters, secrets, nodes: undefined, volumeAttachments: undefined }, queue);

  change(machines);

  expect(keys).toHaveLength(1);
});

test('Machines of the first list enqueue no Clusters, which the first list of these does', () => {
  const enqueued: string[] = [];
  const queue = { add: (key: string) => void enqueued.push(key), addAfter: () => undefined };
  const machines = new MemoryInformer<ClusterAPIMachine>([], CLUSTER_API_MACHINE_INDEXES);
  const clusters = new MemoryInformer<ClusterAPICluster>([object('c')]);
  const secrets = new MemoryInformer<KubeObject>();
  Object.assign(machines, { hasSynced: false });
  wakeClusterAPI({ machines, clusters, secrets, nodes: undefined, volumeAttachments: undefined }, queue);

  machines.put(machine('m'));

  expect(enqueued).toEqual(['Machine/ns/m']);
});

test('a Node enqueues only Machines whose Nodes may be in its cluster', () => {
  const enqueued: string[] = [];
  const queue = { add: (key: string) => void enqueued.push(key), addAfter: () => undefined };
  const machines = new MemoryInformer(
    [machine('in', 'sim:///1'), machine('out', 'sim:///1')],
    CLUSTER_API_MACHINE_INDEXES,
  );
  const nodes = new MemoryInformer<Node>();
  const isIn = ({ metadata: { name } }: ClusterAPIMachine): boolean => name === 'in';
  wakeOfNodes({ machines, nodes, volumeAttachments: undefined, isIn }, queue);

  nodes.put(nodeWith('sim:///1'));

  expect(enqueued).toEqual(['Machine/ns/in']);
});
