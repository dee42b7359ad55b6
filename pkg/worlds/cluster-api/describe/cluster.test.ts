import { expect, test } from '@jest/globals';

import type { ClusterAPICluster } from '../api/cluster.ts';
import type { AroundCluster } from '../controllers/explain-cluster.ts';
import type { Reader } from '../../../kube/client/client.ts';
import { aroundCluster, clusterDescription, renderCluster } from './cluster.ts';

const THEN = '2026-01-01T00:00:00Z';
const NOW_MS = Date.parse('2026-01-01T00:10:00Z');
const metadata = { name: 'c', namespace: 'ns', uid: 'u', resourceVersion: '1', creationTimestamp: THEN };

const CLUSTER: ClusterAPICluster = {
  metadata: { ...metadata, finalizers: ['cluster.cluster.x-k8s.io'] },
  spec: {
    infrastructureRef: { apiGroup: 'g', kind: 'Sim', name: 'i' },
    controlPlaneEndpoint: { host: 'api.example.com', port: 6443 },
  },
  status: {
    phase: 'Provisioned',
    conditions: ['ControlPlaneInitialized', 'InfrastructureReady'].map((type) => ({
      type,
      status: 'True',
      reason: 'Fine',
      message: '',
      lastTransitionTime: THEN,
    })),
  },
};
const MACHINES: AroundCluster['machines'] = [
  {
    metadata: { ...metadata, name: 'm-1' },
    status: {
      phase: 'Running',
      nodeRef: { name: 'n-1' },
      conditions: [{ type: 'Ready', status: 'True', reason: 'Ready', message: '' }],
    },
  },
  { metadata: { ...metadata, name: 'm-2' } },
];

const described = (around: AroundCluster, cluster = CLUSTER): string =>
  renderCluster(clusterDescription(cluster, around, [], NOW_MS), NOW_MS);

test('a Cluster is described in the layout of kubectl, with its Machines', () => {
  expect(described({ machines: MACHINES, kubeconfig: 'there' })).toBe(
    [
      'Name:            c',
      'Namespace:       ns',
      'Phase:           Provisioned',
      'Reason:          Provisioned',
      'Message:         Cluster is provisioned, with 2 Machines, 1 of them Running.',
      'Waiting For:     <nothing>',
      `Since:           2026-01-01T00:00:00Z (10m)`,
      'Next:            Nothing.',
      'Infrastructure:  Sim i',
      'Control Plane:   <none>',
      'Endpoint:        api.example.com:6443',
      'Nodes:           in the cluster of Secret c-kubeconfig',
      'Machines:',
      '  Name  Phase    Ready    Node',
      '  ----  -----    -----    ----',
      '  m-1   Running  True     n-1',
      '  m-2            Unknown  <none>',
      'Conditions:',
      '  Type                     Status  Age  Reason  Message',
      '  ----                     ------  ---  ------  -------',
      '  ControlPlaneInitialized  True    10m  Fine',
      '  InfrastructureReady      True    10m  Fine',
      'Events:  <none>',
    ].join('\n'),
  );
});

test.each([
  { kubeconfig: 'missing', annotations: {}, nodes: 'in the target cluster of the manager' },
  {
    kubeconfig: 'missing',
    annotations: { 'cluster-api.machine.sapcloud.io/had-kubeconfig': 'true' },
    nodes: 'in the cluster of Secret c-kubeconfig, which no longer exists',
  },
  { kubeconfig: 'unknown', annotations: {}, nodes: 'unknown: no permission to read Secret c-kubeconfig' },
] as const)(
  'where the Nodes are is said with a kubeconfig that is $kubeconfig: $nodes',
  ({ kubeconfig, annotations, nodes }) => {
    const cluster = { ...CLUSTER, metadata: { ...CLUSTER.metadata, annotations } };

    expect(described({ machines: 'unknown', kubeconfig }, cluster)).toMatch(
      new RegExp(`\\nNodes: +${nodes}\\nMachines: {2}<unknown>\\n`),
    );
  },
);

test('of the kubeconfig of a Cluster nothing is read but that it is there', async () => {
  const asked: unknown[] = [];
  const reader = {
    get: (_resource: unknown, ref: object, options: object) => {
      asked.push({ ...ref, ...options });
      return Promise.resolve({ metadata });
    },
    list: () => Promise.resolve({ items: [] }),
  } as unknown as Reader;

  const { kubeconfig } = await aroundCluster(reader, CLUSTER);

  expect([kubeconfig, asked]).toEqual(['there', [{ namespace: 'ns', name: 'c-kubeconfig', metadataOnly: true }]]);
});
