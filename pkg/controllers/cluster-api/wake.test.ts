import { expect, test } from '@jest/globals';

import { MemoryInformer } from '../../../test/memory-informer.ts';
import type { ClusterAPICluster } from '../../apis/cluster-api/cluster.ts';
import type { ClusterAPIMachine } from '../../apis/cluster-api/machine.ts';
import type { KubeObject } from '../../apis/meta.ts';
import { CLUSTER_API_MACHINE_INDEXES } from '../../indexes/machine-indexes.ts';
import { wakeClusterAPI } from './wake.ts';

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
