import { performance } from 'node:perf_hooks';

import { expect, test } from '@jest/globals';

import type { Node, Pod } from '../../pkg/apis/wire.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { privateControlPlane } from '../env/environment.ts';
import { bootstrapToken, startKubelet } from '../env/kubelet.ts';
import { eventually } from '../expect/eventually.ts';
import { DrainCluster } from './drain-cluster.ts';

const never = new AbortController().signal;
const STOP_SECONDS = 4;

test('waits for pods of a real kubelet to stop in their own time, and deletes them at once when forced', async () => {
  await using plane = await privateControlPlane({ programs: ['kubemark'] });
  const { connection } = plane;
  await startKubelet(plane, 'kubelet-1', await bootstrapToken(connection));
  await using cluster = await DrainCluster.open({ connection, clock: new SystemClock() });
  const node = await eventually(
    () => {
      const joined = cluster.target.nodes.get('kubelet-1');
      const isReady = joined?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
      return isReady === true && joined !== undefined ? joined : false;
    },
    { timeoutMs: 120_000, describe: 'the kubelet to be ready' },
  );

  const slow = await runningPod(cluster, node as Node);
  const begin = performance.now();
  const graceful = await cluster.drain(cluster.request(node as Node, {}, 60_000), never);
  const gracefulMs = performance.now() - begin;
  await cluster.patch('/api/v1/nodes/kubelet-1', { spec: { unschedulable: null } });
  await runningPod(cluster, node as Node);
  const before = cluster.sent.length;
  const forced = await cluster.drain(cluster.request(node as Node, { force: true }, 60_000), never);

  expect(slow.spec?.nodeName).toBe('kubelet-1');
  expect(graceful).toEqual({ kind: 'drained' });
  expect(gracefulMs).toBeGreaterThan(STOP_SECONDS * 1_000 - 1_000);
  expect(forced).toEqual({ kind: 'drained' });
  expect(cluster.sent.slice(before).map(({ verb, resource }) => `${verb} ${resource}`)).toContain('delete pods');
  expect(cluster.sent.slice(before).map(({ resource }) => resource)).not.toContain('pods/eviction');
  expect(await cluster.podsOf('kubelet-1')).toEqual([]);
});

/** A pod that the kubelet has started, and that takes a few seconds to stop. */
async function runningPod(cluster: DrainCluster, node: Node): Promise<Pod> {
  const { name } = node.metadata;
  const sleep = { preStop: { sleep: { seconds: STOP_SECONDS } } };
  const pod = await cluster.create<Pod>(cluster.podsPath(), {
    metadata: { generateName: 'slow-' },
    spec: {
      nodeName: name,
      terminationGracePeriodSeconds: 30,
      containers: [{ name: 'c', image: 'registry.example/c:1', lifecycle: sleep }],
    },
  });
  await eventually(async () => (await cluster.get<Pod>(cluster.podPath(pod))).status?.phase === 'Running', {
    timeoutMs: 120_000,
    describe: 'the pod to run',
  });
  return pod;
}
