import { readFileSync, writeFileSync } from 'node:fs';

import { describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { HOUR } from '../durations.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { CONTROL } from '../../pkg/kube/gate/gate.ts';
import { machines, nodes } from '../../pkg/kube/client/resource.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { clockMetrics } from '../../pkg/base/metrics/clock.ts';
import { kubeMetrics } from '../../pkg/base/metrics/kube.ts';
import { openCluster } from '../../pkg/operator/clusters.ts';
import type { ClusterAccess } from '../../pkg/operator/clusters.ts';
import { connect } from '../env/environment.ts';
import { httpProxyFor } from './kube-session.ts';

/** A way to the API server, or to the proxy at `url`, for a process whose clock is an hour slow. */
async function accessOf(
  cluster: string,
  limit: { qps: number; burst: number } = { qps: 0, burst: 0 },
  url?: string,
): Promise<{ access: ClusterAccess; clock: SystemClock; startMs: number; kubeconfig: string; moved: string[] }> {
  const clock = new SystemClock();
  const startMs = clock.now() - HOUR;
  clock.reanchor(startMs);
  const registry = new Registry();
  const moved: string[] = [];
  const kubeconfig = await connect().kubeconfigFor({ user: 'clock-test', groups: ['system:masters'] });
  if (url !== undefined) writeFileSync(kubeconfig, readFileSync(kubeconfig, 'utf8').replace(connect().url, url));
  const access = await openCluster({
    cluster,
    kubeconfig,
    probe: { resource: cluster === CONTROL ? machines : nodes, namespace: undefined },
    userAgent: 'test',
    env: {},
    ...limit,
    clock,
    log: silentLogger,
    metrics: kubeMetrics(registry),
    clockMetrics: clockMetrics(registry),
    moved: (one) => moved.push(one),
  });
  return { access, clock, startMs, kubeconfig, moved };
}

describe('a clock that is an hour slow', () => {
  test.each([
    { cluster: CONTROL, hoursMoved: 1 },
    { cluster: 'target', hoursMoved: 0 },
  ])('is moved by $hoursMoved h by the answers of cluster $cluster', async ({ cluster, hoursMoved }) => {
    const { access, clock, startMs } = await accessOf(cluster);
    const beforeMs = clock.monotonicMs();

    for (let i = 0; i < 5; i++) await access.reader.list(nodes, { limit: 1 });
    const movedMs = clock.now() - startMs - (clock.monotonicMs() - beforeMs);

    await access.transport.close();
    expect(Math.round(movedMs / HOUR)).toBe(hoursMoved);
  });
});

test('a probe does not wait behind requests that wait for the rate limit', async () => {
  const { access } = await accessOf('target', { qps: 1, burst: 1 });
  const over = new AbortController();
  let listed = 0;
  const list = async (): Promise<void> => {
    await access.reader.list(nodes, { limit: 1, signal: over.signal });
    listed += 1;
  };
  const lists = Promise.allSettled(Array.from({ length: 30 }, list));

  await access.probed.probe(over.signal);
  const listedBefore = listed;

  over.abort(new Error('the test is over'));
  await lists;
  await access.transport.close();
  expect(listedBefore).toBeLessThan(30);
});

test('requests that wait for the rate limit end when the access is closed', async () => {
  const { access } = await accessOf('target', { qps: 0.001, burst: 1 });
  const list = async (): Promise<void> => void (await access.reader.list(nodes, { limit: 1 }));
  await list();
  const waiting = Promise.allSettled([list(), list()]);

  await access.transport.close();

  const refused = { status: 'rejected', reason: { reason: 'Unreachable' } };
  expect(await waiting).toMatchObject([refused, refused]);
});

test.each([CONTROL, 'target'])(
  'a probe of cluster %s believes the API server, and nobody else who answers',
  async (cluster) => {
    await using proxy = await httpProxyFor(connect());
    const { access } = await accessOf(cluster, { qps: 0, burst: 0 }, proxy.url);
    const { signal } = new AbortController();

    await expect(access.probed.probe(signal)).resolves.toBeUndefined();
    proxy.inject({ matches: () => true, status: 404 });
    await expect(access.probed.probe(signal)).rejects.toMatchObject({ reason: 'NotServed' });

    await access.transport.close();
  },
);

test('a kubeconfig that comes to name another server is told of once, with its cluster', async () => {
  const { access, kubeconfig, moved } = await accessOf(CONTROL);
  const { endpoint, transport } = access;
  await endpoint.credentials();
  writeFileSync(kubeconfig, readFileSync(kubeconfig, 'utf8').replace(connect().url, 'https://127.0.0.1:1'));

  for (let i = 0; i < 2; i++) {
    endpoint.refused();
    await endpoint.credentials();
  }

  await transport.close();
  expect(endpoint.url).toBe('https://127.0.0.1:1');
  expect(moved).toEqual([CONTROL]);
});
