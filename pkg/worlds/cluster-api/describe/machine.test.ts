import { expect, test } from '@jest/globals';

import type { ClusterAPIMachine } from '../api/machine.ts';
import type { ClusterLookup } from '../controllers/explain.ts';
import { clusterAPIDescription, renderClusterAPI } from './machine.ts';

const THEN = '2026-01-01T00:00:00Z';
const NOW_MS = Date.parse('2026-01-01T00:10:00Z');
const PRE_DRAIN = 'pre-drain.delete.hook.machine.cluster.x-k8s.io/backup';
const PRE_TERMINATE = 'pre-terminate.delete.hook.machine.cluster.x-k8s.io/machinist';
const metadata = { name: 'm-1', namespace: 'ns', uid: 'u', resourceVersion: '1', creationTimestamp: THEN };
const CLUSTER: ClusterLookup = { metadata: { ...metadata, name: 'c' } };

const MACHINE: ClusterAPIMachine = {
  metadata: {
    ...metadata,
    finalizers: ['machine.cluster.x-k8s.io'],
    deletionTimestamp: THEN,
    annotations: { [PRE_TERMINATE]: '', [PRE_DRAIN]: '', other: '' },
  },
  spec: {
    clusterName: 'c',
    version: 'v1.34.0',
    providerID: 'sim:///1',
    failureDomain: 'wanted',
    bootstrap: { dataSecretName: 'userdata' },
    infrastructureRef: { apiGroup: 'g', kind: 'Sim', name: 'i' },
  },
  status: {
    phase: 'Deleting',
    nodeRef: { name: 'n-1' },
    failureDomain: 'used',
    deletion: { waitForPreDrainHookStartTime: '2026-01-01T00:08:00Z' },
    conditions: [
      {
        type: 'Deleting',
        status: 'True',
        reason: 'WaitingForPreDrainHook',
        message: `Waiting for hooks to be removed: ${PRE_DRAIN}`,
        lastTransitionTime: THEN,
      },
      { type: 'InfrastructureReady', status: 'True', reason: 'Ready', message: '', lastTransitionTime: THEN },
    ],
  },
};

const described = (machine = MACHINE, cluster: ClusterLookup = CLUSTER): string =>
  renderClusterAPI(clusterAPIDescription(machine, cluster, [], NOW_MS), NOW_MS);

test('a Machine of Cluster API is described in the layout of kubectl, with what holds its deletion', () => {
  expect(described()).toBe(
    [
      'Name:            m-1',
      'Namespace:       ns',
      'Cluster:         c',
      'Version:         v1.34.0',
      'Phase:           Deleting',
      'Reason:          WaitingForPreDrainHook',
      `Message:         Waiting for hooks to be removed: ${PRE_DRAIN}.`,
      `Waiting For:     Waiting for hooks to be removed: ${PRE_DRAIN}`,
      'Since:           2026-01-01T00:08:00Z (2m)',
      'Next:            Its Node is drained after the owners of these annotations have removed them.',
      `Deletion:        ${THEN}`,
      'Bootstrap:       Secret userdata (unknown)',
      'Infrastructure:  Sim i (ready, Ready)',
      'Provider ID:     sim:///1',
      'Failure Domain:  used',
      'Node:            n-1',
      `Hooks:           ${PRE_DRAIN}, ${PRE_TERMINATE}`,
      'Conditions:',
      '  Type                 Status  Age  Reason                  Message',
      '  ----                 ------  ---  ------                  -------',
      `  Deleting             True    10m  WaitingForPreDrainHook  Waiting for hooks to be removed: ${PRE_DRAIN}`,
      '  InfrastructureReady  True    10m  Ready',
      'Events:  <none>',
    ].join('\n'),
  );
});

test('of a Machine of which nothing is known yet it is said what is not there', () => {
  const bare = { metadata, spec: { clusterName: 'c', failureDomain: 'wanted' } };

  expect(described(bare, 'missing')).toMatch(
    /\nPhase: +<none>\nReason: +ClusterMissing\n[^]*\nBootstrap: +<none> \(unknown\)\nInfrastructure: +<none> \(unknown\)\nFailure Domain: +wanted\nNode: +<none>\nHooks: +<none>\nConditions: {2}<none>\nEvents: {2}<none>$/,
  );
});

test('bootstrap by an object of a provider is called by its kind, with why it is not ready', () => {
  const { spec, status, ...rest } = MACHINE;
  const conditions = [{ type: 'BootstrapConfigReady', status: 'False' as const, reason: 'NotReady', message: '' }];
  const machine = {
    ...rest,
    spec: { ...spec, bootstrap: { configRef: { apiGroup: 'g', kind: 'Config', name: 'b' }, dataSecretName: 's' } },
    status: { ...status, conditions },
  };

  expect(described(machine)).toMatch(/\nBootstrap: +Config b \(not ready, NotReady\)\n/);
});
