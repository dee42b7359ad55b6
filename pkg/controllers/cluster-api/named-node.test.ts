import { expect, test } from '@jest/globals';

import { node } from '../../../test/builders.ts';
import type { ClusterAPIMachine } from '../../apis/cluster-api/machine.ts';
import { namedNode } from './named-node.ts';

const ID = 'sim:///1';
const OWN = {
  'cluster.x-k8s.io/machine': 'm',
  'cluster.x-k8s.io/cluster-namespace': 'ns',
  'cluster.x-k8s.io/cluster-name': 'c',
};

const machine = (deletionTimestamp?: string): ClusterAPIMachine => ({
  metadata: {
    name: 'm',
    namespace: 'ns',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '',
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
  },
  spec: { clusterName: 'c', providerID: ID },
  status: { nodeRef: { name: 'n' } },
});

test.each<{
  what: string;
  providerID?: string;
  annotations?: Record<string, string>;
  isLive?: boolean;
  kinds: readonly [alive: string, going: string];
}>([
  { what: 'that is not there', isLive: false, kinds: ['gone', 'gone'] },
  { what: 'that the cache did not show yet', providerID: ID, kinds: ['found', 'found'] },
  { what: 'with the provider ID of another', providerID: 'sim:///2', annotations: OWN, kinds: ['gone', 'gone'] },
  { what: 'that has registered anew', kinds: ['undecided', 'found'] },
  { what: 'that has registered anew, with an empty ID', providerID: '', kinds: ['undecided', 'found'] },
  { what: 'that has lost its ID', annotations: OWN, kinds: ['undecided', 'found'] },
  ...Object.keys(OWN).map((key) => ({
    what: `whose annotation ${key} names another`,
    annotations: { ...OWN, [key]: 'other' },
    kinds: ['undecided', 'undecided'] as const,
  })),
])('a Node of the name in nodeRef $what is $kinds', ({ providerID, annotations = {}, isLive = true, kinds }) => {
  const live = node((n) => {
    n.metadata = { ...n.metadata, name: 'n', annotations };
    n.spec = providerID === undefined ? {} : { providerID };
  });
  const seen = [machine(), machine('now')].map((one) => namedNode(one, isLive ? live : undefined).kind);

  expect(seen).toEqual(kinds);
});
