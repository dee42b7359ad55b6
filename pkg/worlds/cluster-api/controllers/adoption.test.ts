import { expect, test } from '@jest/globals';

import type { KubeObject, OwnerReference } from '../../../apis/meta.ts';
import { adoptionOf, ownersOfMachine } from './adoption.ts';

const object = (uid: string, ownerReferences: readonly OwnerReference[] = [], labels = {}): KubeObject => ({
  metadata: {
    name: `${uid}-name`,
    uid,
    resourceVersion: '1',
    creationTimestamp: '',
    ownerReferences: [...ownerReferences],
    labels,
  },
});
const reference = (kind: string, uid: string, more: object = {}): OwnerReference => ({
  apiVersion: 'cluster.x-k8s.io/v1beta1',
  kind,
  name: `${uid}-name`,
  uid,
  ...more,
});
/** As which Machines and Clusters are served. */
const NOW = 'cluster.x-k8s.io/v1beta2';
const ours = {
  apiVersion: NOW,
  kind: 'Machine',
  name: 'm-name',
  uid: 'm',
  controller: true,
  blockOwnerDeletion: true,
};
const other = reference('Cluster', 'c');
const plane = {
  ...reference('KubeadmControlPlane', 'k', { controller: true }),
  apiVersion: 'controlplane.cluster.x-k8s.io/v1',
};

test.each([
  { title: 'nobody', has: [], want: { references: [ours] } },
  { title: 'us, of an older version', has: [reference('Machine', 'm')], want: { references: [ours] } },
  { title: 'its creators', has: [reference('MachineSet', 's'), plane, other], want: { references: [other, ours] } },
  {
    title: 'another Machine',
    has: [reference('Machine', 'x', { controller: true })],
    want: { foreign: { name: 'x-name' } },
  },
  {
    title: 'another Machine that does not control it',
    has: [reference('Machine', 'x')],
    want: { references: [reference('Machine', 'x'), ours] },
  },
])('an object that belongs to $title', ({ has, want }) => {
  expect(adoptionOf(object('o', has), object('m'), NOW)).toMatchObject(want);
});

test.each([
  { title: 'alone', has: [], labels: {}, want: 1 },
  { title: 'that it owns', has: [{ ...reference('Cluster', 'c'), apiVersion: NOW }], labels: {}, want: undefined },
  { title: 'that it owns in another version', has: [reference('Cluster', 'c')], labels: {}, want: 1 },
  {
    title: 'of a Cluster that had its name',
    has: [{ ...reference('Cluster', 'old'), name: 'c-name' }],
    labels: {},
    want: 1,
  },
  {
    title: 'that somebody controls',
    has: [reference('MachineSet', 's', { controller: true })],
    labels: {},
    want: undefined,
  },
  { title: 'that a set is about to own', has: [], labels: { 'cluster.x-k8s.io/set-name': 's' }, want: undefined },
])('a Cluster comes to own a Machine $title: $want references', ({ has, labels, want }) => {
  expect(ownersOfMachine(object('m', has, labels), object('c'), NOW)?.length).toBe(want);
});

// promise: cluster-api/versions/owner-references-version-served
test('who owns what is told in the version that is served', () => {
  const older = reference('Cluster', 'c');

  expect(ownersOfMachine(object('m', [other]), object('c'), NOW)).toEqual([{ ...older, apiVersion: NOW }]);
  expect(ownersOfMachine(object('m', []), object('c'), older.apiVersion)).toEqual([older]);
  expect(adoptionOf(object('o', [ours]), object('m'), older.apiVersion)).toEqual({
    references: [{ ...ours, apiVersion: older.apiVersion }],
  });
});
