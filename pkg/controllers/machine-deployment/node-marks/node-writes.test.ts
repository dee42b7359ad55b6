import { describe, expect, test } from '@jest/globals';

import { machine, machineDeployment, node, type BuiltNode } from '../../../../test/builders.ts';
import { DeploymentWorld } from '../../../../test/fakes/replicas-world.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { nodes } from '../../../kube/client/resource.ts';
import { NodeMarker, type NodeWrite } from './node-marker.ts';
import { releaseUpdatedNode, selectNode } from './rollout-node-marks.ts';

const CANDIDATE = 'node.machine.sapcloud.io/candidate-for-update';
const RESULT = 'node.machine.sapcloud.io/update-result';
const HELD = 'cluster-autoscaler.kubernetes.io/scale-down-disabled';
const CONFLICT = new ApiError(409, 'Conflict', 'changed');
const OTHER = { key: 'other', effect: 'NoSchedule' };
const OWN = { key: 'deployment.machine.sapcloud.io/prefer-no-schedule', effect: 'PreferNoSchedule' };
const signal = new AbortController().signal;

function built(resourceVersion: string, change: (n: BuiltNode) => void = () => undefined): BuiltNode {
  return node((n) => {
    n.metadata.resourceVersion = resourceVersion;
    change(n);
  });
}

/** A cached Node; with `live` it has changed to that meanwhile, so that what is written over the cached one is refused. */
function scene(cached: BuiltNode, live?: BuiltNode) {
  const deps = new DeploymentWorld(machineDeployment(), { machines: [machine()], nodes: [cached] });
  if (live !== undefined) {
    deps.targetClient.put(nodes, live);
    deps.targetClient.failures.push(CONFLICT);
  }
  const marker = new NodeMarker(deps);
  const { reads, writes } = deps.targetClient;
  const whole = async (work: Promise<unknown>) => {
    await Promise.all([work, deps.clock.advanceAsync(1_000)]);
    return { reads, writes };
  };
  return {
    taint: () => whole(marker.mark(machineDeployment(), [machine()], { taint: true, holdScaleDown: true }, signal)),
    write: (write: NodeWrite) =>
      whole(marker.write(machineDeployment(), [{ machine: machine(), node: cached }], write, signal)),
  };
}

describe('the marks of a rollout', () => {
  test('go over the Node as it is cached, in one request that fails when that has changed', async () => {
    const { reads, writes } = await scene(built('5', (n) => void (n.spec.taints = [OTHER]))).taint();

    expect(reads).toEqual([]);
    expect(writes).toMatchObject([
      {
        resourceVersion: '5',
        body: { metadata: { annotations: { [HELD]: 'true' } }, spec: { taints: [OTHER, OWN] } },
      },
    ]);
  });

  test('go over what a live read shows after that, and only what is missing there', async () => {
    const live = built('6', (n) => {
      n.spec.taints = [OTHER];
      n.metadata.annotations[HELD] = 'true';
    });
    const { reads, writes } = await scene(built('5'), live).taint();

    expect(reads).toHaveLength(1);
    expect(writes.slice(1)).toMatchObject([
      { resourceVersion: '6', body: { metadata: { annotations: {} }, spec: { taints: [OTHER, OWN] } } },
    ]);
    expect(writes[1]?.body).not.toHaveProperty(['metadata', 'annotations', HELD]);
  });

  test('are not put on another Node of that name', async () => {
    const { writes } = await scene(
      built('5'),
      built('6', (n) => void (n.metadata.uid = 'of another')),
    ).taint();

    expect(writes).toHaveLength(1);
  });
});

const candidate = (n: BuiltNode): unknown => (n.metadata.labels[CANDIDATE] = 'true');

test.each([
  { title: 'waits for its update', change: () => undefined, isChosen: true },
  { title: 'is another one by now', change: (n: BuiltNode) => (n.metadata.uid = 'of another'), isChosen: false },
  {
    title: 'waits for no update any more',
    change: (n: BuiltNode) => delete n.metadata.labels[CANDIDATE],
    isChosen: false,
  },
])('a Node that changed and $title is chosen, while its cluster is known to live: $isChosen', async (row) => {
  const live = built('6', (n) => {
    candidate(n);
    row.change(n);
  });
  const { writes } = await scene(built('5', candidate), live).write(selectNode);

  const write = (resourceVersion: string) => ({ intent: 'destroy', clusters: ['target'], resourceVersion });
  expect(writes).toMatchObject([write('5'), ...(row.isChosen ? [write('6')] : [])]);
});

test.each([
  { title: 'was updated', result: 'successful', isReleased: true },
  { title: 'failed after all', result: 'failed', isReleased: false },
])('a Node that changed and $title gets its pods back: $isReleased', async ({ result, isReleased }) => {
  const updated = (resourceVersion: string, is: string): BuiltNode =>
    built(resourceVersion, (n) => void (n.metadata.labels[RESULT] = is));
  const { writes } = await scene(updated('5', 'successful'), updated('6', result)).write(releaseUpdatedNode);

  expect(writes.slice(1)).toMatchObject(
    isReleased ? [{ resourceVersion: '6', body: { spec: { unschedulable: null } } }] : [],
  );
});
