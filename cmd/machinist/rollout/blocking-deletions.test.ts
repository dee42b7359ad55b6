import { expect, test } from '@jest/globals';

import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../pkg/apis/machine/v1alpha1/machine-set.ts';
import { machine } from '../../../test/builders.ts';
import { describeBlockingDeletions, ownedBy } from './blocking-deletions.ts';

const NOW_MS = Date.parse('2026-01-01T01:00:00Z');
const BLOCKED = '1 pod left. Pod default/web-1 is protected by a PodDisruptionBudget: default/web.';

function deleted(name: string, secondsAgo: number, text = '') {
  return machine((m) => {
    m.metadata.name = name;
    m.metadata.deletionTimestamp = new Date(NOW_MS - secondsAgo * 1_000).toISOString();
    m.metadata.finalizers = ['machine.sapcloud.io/machine-controller-manager'];
    m.status = {
      currentStatus: { phase: 'Terminating' },
      lastOperation: { type: 'Delete', state: 'Processing', description: `${text} Initiate node drain`.trim() },
    };
  });
}

test('a machine whose deletion takes long is named with what it waits for', () => {
  expect(describeBlockingDeletions([deleted('w-1', 30, BLOCKED)], NOW_MS)).toEqual([
    `Machine w-1 is being deleted: ${BLOCKED}`,
  ]);
});

test('one that is not deleted, or has not been for long, holds nothing up', () => {
  const running = machine((m) => void (m.metadata.name = 'w-1'));

  expect(describeBlockingDeletions([running, deleted('w-2', 9, BLOCKED)], NOW_MS)).toEqual([]);
});

test('the oldest three are named, and the rest is counted', () => {
  const lines = describeBlockingDeletions(
    [15, 50, 20, 40, 30].map((ago) => deleted(`w-${ago}`, ago)),
    NOW_MS,
  );

  expect(lines).toEqual([
    ...[50, 40, 30].map((ago) => `Machine w-${ago} is being deleted: Waiting for the pods to leave.`),
    '2 more machines are being deleted',
  ]);
});

test('machines of others with the same labels do not block a rollout', () => {
  const controlled = (name: string, uid: string, owner: string): Machine =>
    ({ metadata: { name, uid, ownerReferences: [{ kind: 'K', name: owner, uid: owner, controller: true }] } }) as never;
  const deployment = { metadata: { name: 'd', uid: 'd' } } as MachineDeployment;
  const sets = [controlled('own', 'own', 'd'), controlled('other', 'other', 'e')] as unknown as readonly MachineSet[];
  const machines = [controlled('a', 'a', 'own'), controlled('b', 'b', 'other'), { metadata: { name: 'c' } } as Machine];

  expect(ownedBy(deployment, sets, machines).map(({ metadata }) => metadata.name)).toEqual(['a']);
});
