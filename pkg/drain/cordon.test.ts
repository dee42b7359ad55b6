import { describe, expect, test } from '@jest/globals';

import { node, type BuiltNode } from '../../test/builders.ts';
import { MemoryClient } from '../../test/memory-client.ts';
import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { ApiError } from '../kube/client/errors.ts';
import { nodes } from '../kube/client/resource.ts';
import { announce, raiseBarrier } from './cordon.ts';
import type { DrainRequest } from './drain.ts';

const TAINT = { key: 'preserved', effect: 'NoSchedule' } as const;
const CONDITION = { type: 'Terminating', status: 'True', reason: 'ScaleDown', message: 'x' } as const;
const OTHER = { key: 'other', effect: 'NoSchedule' };
const signal = new AbortController().signal;
const clock = new FakeClock();

function scene(live: BuiltNode, barrier: DrainRequest['barrier']) {
  const client = new MemoryClient();
  client.put(nodes, live);
  const target = { cluster: 'target', reader: client, writer: client };
  const { name, uid } = node().metadata;
  // Only what a barrier needs of a drain.
  const request = {
    target,
    nodeName: name,
    nodeUID: uid,
    barrier,
    nodeCondition: CONDITION,
  } as unknown as DrainRequest;
  return { client, request };
}

describe('the barrier of a taint', () => {
  const tainted = node((n) => {
    n.metadata.resourceVersion = '6';
    n.spec.taints = [OTHER];
  });

  test('goes over the list that was read live, and fails when that has changed', async () => {
    const { client, request } = scene(tainted, { taint: TAINT });

    expect(await raiseBarrier(request, node(), clock, signal)).toBeDefined();

    expect(client.writes).toMatchObject([{ resourceVersion: '6', body: { spec: { taints: [OTHER, TAINT] } } }]);
  });

  test('is tried again when a kubelet has just written its Node', async () => {
    const { client, request } = scene(tainted, { taint: TAINT });
    client.failures.push(new ApiError(409, 'Conflict', 'changed'));

    expect(await raiseBarrier(request, node(), clock, signal)).toBeDefined();

    expect(client.writes).toHaveLength(2);
  });

  test('is raised once', async () => {
    const { client, request } = scene(
      node((n) => void (n.spec.taints = [TAINT])),
      { taint: TAINT },
    );

    expect(await raiseBarrier(request, node(), clock, signal)).toBeDefined();

    expect(client.writes).toEqual([]);
  });
});

describe('a marked cordon', () => {
  const MARK = 'node.machine.sapcloud.io/cordoned-by-maintenance';

  test('says that it is ours, and fails when the Node has changed meanwhile', async () => {
    const { client, request } = scene(node(), 'marked-cordon');

    expect(await raiseBarrier(request, node(), clock, signal)).toBeDefined();

    const { resourceVersion } = node().metadata;
    expect(client.writes).toMatchObject([
      { resourceVersion, body: { metadata: { annotations: { [MARK]: 'true' } }, spec: { unschedulable: true } } },
    ]);
  });

  test('does not take the cordon of somebody who was faster for ours', async () => {
    const { client, request } = scene(
      node((n) => void (n.spec.unschedulable = true)),
      'marked-cordon',
    );
    client.failures.push(new ApiError(409, 'Conflict', 'changed'));

    expect(await raiseBarrier(request, node(), clock, signal)).toBeDefined();

    expect(client.writes).toHaveLength(1);
  });
});

describe('the cordon of a deletion', () => {
  const MARK = 'node.machine.sapcloud.io/cordoned-by-maintenance';

  test('says that it is ours', async () => {
    const { client, request } = scene(node(), 'deletion-cordon');

    expect(await raiseBarrier(request, node(), clock, signal)).toBeDefined();

    expect(client.writes).toMatchObject([{ body: { metadata: { annotations: { [MARK]: 'true' } } } }]);
  });

  test('does without that where the API server refuses it', async () => {
    const { client, request } = scene(node(), 'deletion-cordon');
    client.failures.push(new ApiError(403, 'Forbidden', 'no such annotation here'));

    expect(await raiseBarrier(request, node(), clock, signal)).toBeDefined();

    expect(client.writes.at(-1)?.body).toMatchObject({ spec: { unschedulable: true } });
    expect(client.writes.at(-1)?.body).not.toHaveProperty(['metadata', 'annotations']);
  });

  test('is not made without that after a failure that says nothing about it: nobody would lift it', async () => {
    const { client, request } = scene(node(), 'deletion-cordon');
    client.failures.push(new ApiError(500, 'InternalError', 'timed out'));

    await expect(raiseBarrier(request, node(), clock, signal)).rejects.toMatchObject({ code: 500 });

    expect(client.writes).toHaveLength(1);
  });
});

test.each(['cordon', 'marked-cordon', 'deletion-cordon'] as const)(
  'a %s that only the cache shows is set again: it may have been lifted since',
  async (barrier) => {
    const { client, request } = scene(node(), barrier);
    const cordoned = node((n) => void (n.spec.unschedulable = true));

    expect(await raiseBarrier(request, cordoned, clock, signal)).toBeDefined();

    expect(client.writes).toMatchObject([{ body: { spec: { unschedulable: true } } }]);
  },
);

test('the condition of a Node is written once', async () => {
  const { client, request } = scene(node(), 'cordon');
  expect(await announce(request, node(), clock, signal)).toBeDefined();
  expect(client.writes).toMatchObject([{ what: 'nodes/m-1/status', body: { status: { conditions: [CONDITION] } } }]);

  const told = node((n) => void n.status.conditions.push(CONDITION));
  const again = scene(told, 'cordon');
  await announce(again.request, told, clock, signal);
  expect(again.client.writes).toEqual([]);
});

test('a cordon that must find the Node unchanged goes over what the condition left, not over what the cache shows', async () => {
  const { client, request } = scene(node(), 'deletion-cordon');

  const told = (await announce(request, node(), clock, signal)) ?? node();
  await raiseBarrier(request, told, clock, signal);

  expect(told.metadata.resourceVersion).not.toBe(node().metadata.resourceVersion);
  expect(client.writes).toMatchObject([{}, { resourceVersion: told.metadata.resourceVersion }]);
});

test('a Node that is gone has no barrier', async () => {
  const { client, request } = scene(node(), 'cordon');
  client.failures.push(new ApiError(404, 'NotFound', 'gone'));

  expect(await raiseBarrier(request, node(), clock, signal)).toBeUndefined();
});
