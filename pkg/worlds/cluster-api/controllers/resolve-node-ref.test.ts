import { expect, test } from '@jest/globals';

import { node } from '../../../../test/builders.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import { resolveNodeRef } from './resolve-node-ref.ts';

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

const named = (name: string, providerID?: string, annotations: Record<string, string> = {}) =>
  node((n) => {
    n.metadata = { ...n.metadata, name, annotations };
    n.spec = providerID === undefined ? {} : { providerID };
  });
const ALONE = { nodes: [], contest: undefined, infrastructure: 'there' } as const;

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
  const live = isLive ? named('n', providerID, annotations) : undefined;
  const seen = [machine(), machine('now')].map((one) => resolveNodeRef(one, live, ALONE).kind);

  expect(seen).toEqual(kinds);
});

const [A, B] = ['a', 'b'].map((name) => named(name, ID));
/** How to find out which Node it is. */
const WHICH =
  /delete the one whose status\.nodeInfo\.systemUUID and addresses differ from those that the provider shows/;

test.each([
  { what: 'one of another name', nodes: ['a'], want: { kind: 'found', node: A } },
  {
    what: 'two of other names',
    nodes: ['b', 'a'],
    want: {
      kind: 'undecided',
      problem: expect.stringMatching(
        new RegExp(`^Node n no longer exists, and Nodes a and b have its provider ID ${ID}: ${WHICH.source}`),
      ),
    },
  },
  {
    what: 'one that another Machine has',
    nodes: ['a'],
    contest: 'c',
    want: {
      kind: 'undecided',
      problem: `Node n no longer exists, and Node a has its provider ID ${ID}. c`,
    },
  },
  {
    what: 'one of another name, beside the one of its name without an ID',
    nodes: ['a'],
    live: named('n'),
    want: {
      kind: 'undecided',
      problem: expect.stringMatching(
        new RegExp(
          `^Node n re-registered without a provider ID, and Node a has its provider ID ${ID}: wait for the ID, or ${WHICH.source}`,
        ),
      ),
    },
  },
  {
    what: 'one of another name, beside the one of its name',
    nodes: ['a'],
    live: named('n', ID),
    want: { kind: 'found' },
  },
  { what: 'one, without its infrastructure', nodes: ['a'], infrastructure: 'gone' as const, want: { kind: 'gone' } },
  {
    what: 'one, before it is known whether there is its infrastructure',
    nodes: ['a'],
    infrastructure: 'unknown' as const,
    want: {
      kind: 'undecided',
      problem: `Node n no longer exists, and Node a has its provider ID ${ID}: waiting until it is known whether its infrastructure exists`,
    },
  },
])('of Nodes with the provider ID of a Machine, $what: $want.kind', ({ live, contest, want, ...given }) => {
  const nodes = [A, B].flatMap((one) => (one && given.nodes.includes(one.metadata.name) ? one : []));
  const others = { nodes, contest, infrastructure: given.infrastructure ?? ('there' as const) };

  for (const one of [machine(), machine('now')]) expect(resolveNodeRef(one, live, others)).toMatchObject(want);
});
