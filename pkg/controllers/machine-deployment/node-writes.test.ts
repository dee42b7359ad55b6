import { describe, expect, test } from '@jest/globals';

import { machine, machineDeployment, node, type BuiltNode } from '../../../test/builders.ts';
import { MemoryDeploymentDeps } from '../../../test/machine-deployment-deps.ts';
import { nodes } from '../../kube/resource.ts';
import { markNode, releaseUpdatedNode, selectNode } from './rollout-node-marks.ts';

const CANDIDATE = 'node.machine.sapcloud.io/candidate-for-update';
const RESULT = 'node.machine.sapcloud.io/update-result';
const signal = new AbortController().signal;
const cached = node((n) => void (n.metadata.resourceVersion = '5'));

function live(change: (n: BuiltNode) => void): BuiltNode {
  return node((n) => {
    n.metadata.resourceVersion = '6';
    change(n);
  });
}

/** A cached Node, of which a live read finds `now`. */
function scene(now: BuiltNode) {
  const deps = new MemoryDeploymentDeps(machineDeployment(), { nodes: [cached] });
  deps.targetClient.put(nodes, now);
  const target = deps.targets.of(machine());
  if (target === undefined) throw new Error('no target');
  return { target, writes: deps.targetClient.writes };
}

describe('the taint of a rollout', () => {
  test('goes over the list that was read live, and fails when that has changed', async () => {
    const other = { key: 'other', effect: 'NoSchedule' };
    const { target, writes } = scene(live((n) => void (n.spec.taints = [other])));

    await markNode(target, cached, { taint: true }, signal);

    expect(writes).toMatchObject([
      { resourceVersion: '6', body: { spec: { taints: [other, { effect: 'PreferNoSchedule' }] } } },
    ]);
  });

  test('is not put on another Node of that name', async () => {
    const { target, writes } = scene(live((n) => void (n.metadata.uid = 'of another')));

    await markNode(target, cached, { taint: true }, signal);

    expect(writes).toEqual([]);
  });
});

test.each([
  { title: 'waits for its update', is: {}, isChosen: true },
  { title: 'is another one by now', is: { uid: 'of another' }, isChosen: false },
  { title: 'waits for no update any more', is: { labels: {} }, isChosen: false },
])(
  'a Node that $title is chosen as a live read shows it, while its cluster is known to live: $isChosen',
  async (row) => {
    const { target, writes } = scene(
      live((n) => Object.assign(n.metadata, { labels: { [CANDIDATE]: 'true' } }, row.is)),
    );

    await selectNode(target, cached, signal);

    const write = { intent: 'destroy', clusters: ['target'], uid: cached.metadata.uid, resourceVersion: '6' };
    expect(writes).toMatchObject(row.isChosen ? [write] : []);
  },
);

test.each([
  { title: 'was updated', result: 'successful', uid: cached.metadata.uid, isReleased: true },
  { title: 'is another one by now', result: 'successful', uid: 'of another', isReleased: false },
  { title: 'failed after all', result: 'failed', uid: cached.metadata.uid, isReleased: false },
])('a Node that $title gets its pods back: $isReleased', async ({ result, uid, isReleased }) => {
  const now = live((n) => {
    n.metadata.uid = uid;
    n.metadata.labels[RESULT] = result;
  });
  const { target, writes } = scene(now);

  await releaseUpdatedNode(target, cached, signal);

  expect(writes).toMatchObject(isReleased ? [{ resourceVersion: '6', body: { spec: { unschedulable: null } } }] : []);
});
