import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { SystemClock } from '../base/clock/system-clock.ts';
import { HeldWork } from '../health/held-work.ts';
import { silentLogger } from '../base/log/logger.ts';
import { clockMetrics } from '../base/metrics/clock.ts';
import { kubeMetrics } from '../base/metrics/kube.ts';
import type { Outages } from '../kube/gate/outages.ts';
import type { CachingProcess } from './cached/kind.ts';
import { MACHINE_LEASE } from '../kube/leader/names.ts';
import { type OpenTargetOptions, TargetClusters } from './target-clusters.ts';

const KUBECONFIG = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [{ name: 'c', cluster: { server: 'https://away.invalid:6443' } }],
  users: [{ name: 'u', user: { token: 't' } }],
  contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  'current-context': 'x',
});

test('of two openings of one cluster at once, the second is refused before it has started anything; after the end, all are', async () => {
  const registry = new Registry();
  const clock = new SystemClock();
  const probed: string[] = [];
  const outages = {
    add: ({ cluster }: { cluster: string }) => void probed.push(`add ${cluster}`),
    remove: (cluster: string) => Promise.resolve(void probed.push(`remove ${cluster}`)),
    state: () => undefined,
    sawLife: () => undefined,
  } as unknown as Outages;
  const all = new TargetClusters({
    userAgent: 'test',
    qps: 1,
    burst: 1,
    clock,
    log: silentLogger,
    metrics: kubeMetrics(registry),
    clockMetrics: clockMetrics(registry),
    outages,
    held: new HeldWork({ clock }),
    freeze: true,
    process: { leases: new Set([MACHINE_LEASE]) } as unknown as CachingProcess,
    intercept: undefined,
  });
  const options = { gate: {}, changed: () => undefined } as unknown as OpenTargetOptions;
  const opened = await Promise.allSettled([1, 2].map(() => all.open('ns/c', KUBECONFIG, options)));
  for (const one of opened) if (one.status === 'fulfilled') one.value.close();

  expect(opened.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  expect(probed).toEqual(['add ns/c', 'remove ns/c']);
  const again = await all.open('ns/c', KUBECONFIG, options);
  expect(all.podsOn('ns/c', 'node')).toBeDefined();
  again.close();
  expect(() => all.podsOn('ns/c', 'node')).toThrow('cluster ns/c has no access to pods');
  await all.stop();
  expect(probed).toHaveLength(4);
  await expect(all.open('ns/c', KUBECONFIG, options)).rejects.toThrow('no cluster is opened any more');
  expect(probed).toHaveLength(4);
});
