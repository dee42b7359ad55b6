import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { SystemClock } from '../base/clock/system-clock.ts';
import { HeldWork } from '../health/held-work.ts';
import { silentLogger } from '../base/log/logger.ts';
import { clockMetrics } from '../base/metrics/clock.ts';
import { kubeMetrics } from '../base/metrics/kube.ts';
import type { Outage } from '../kube/gate/outage.ts';
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

function targetClusters(outages: Partial<Outages>): TargetClusters {
  const registry = new Registry();
  const clock = new SystemClock();
  return new TargetClusters({
    userAgent: 'test',
    qps: 1,
    burst: 1,
    clock,
    log: silentLogger,
    metrics: kubeMetrics(registry),
    clockMetrics: clockMetrics(registry),
    outages: outages as Outages,
    held: new HeldWork({ clock }),
    freeze: true,
    process: { leases: new Set([MACHINE_LEASE]) } as unknown as CachingProcess,
    intercept: undefined,
  });
}

const OPTIONS = { gate: {}, changed: () => undefined } as unknown as OpenTargetOptions;

test('of two openings of one cluster at once, the second is refused before it has started anything; after the end, all are', async () => {
  const probed: string[] = [];
  const outages = {
    add: ({ cluster }: { cluster: string }) => void probed.push(`add ${cluster}`),
    remove: (cluster: string) => Promise.resolve(void probed.push(`remove ${cluster}`)),
    state: () => undefined,
    sawLife: () => undefined,
  };
  const all = targetClusters(outages);
  const opened = await Promise.allSettled([1, 2].map(() => all.open('ns/c', KUBECONFIG, OPTIONS)));
  for (const one of opened) if (one.status === 'fulfilled') one.value.close();

  expect(opened.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  expect(probed).toEqual(['add ns/c', 'remove ns/c']);
  const again = await all.open('ns/c', KUBECONFIG, OPTIONS);
  expect(all.podsOn('ns/c', 'node')).toBeDefined();
  again.close();
  expect(() => all.podsOn('ns/c', 'node')).toThrow('cluster ns/c has no access to pods');
  await all.stop();
  expect(probed).toHaveLength(4);
  await expect(all.open('ns/c', KUBECONFIG, OPTIONS)).rejects.toThrow('no cluster is opened any more');
  expect(probed).toHaveLength(4);
});

const OUTAGE: Outage = { cluster: 'ns/c', sinceMs: 0, why: 'w' };

test.each<{ what: string; outage: Outage | undefined; answeredMs?: number; lostSinceMs: number | undefined }>([
  { what: 'has never answered', outage: OUTAGE, lostSinceMs: 7 },
  { what: 'does not answer', outage: OUTAGE, answeredMs: 5, lostSinceMs: 7 },
  { what: 'answers in vain, as it cannot be read', outage: OUTAGE, answeredMs: 9, lostSinceMs: 9 },
  { what: 'is still read', outage: undefined, lostSinceMs: undefined },
  { what: 'was set back', outage: { ...OUTAGE, isSetBack: true }, lostSinceMs: undefined },
  { what: 'refuses our credentials', outage: { ...OUTAGE, isWithoutCredentials: true }, lostSinceMs: undefined },
])('a cluster that $what is lost since $lostSinceMs', async ({ outage, answeredMs, lostSinceMs }) => {
  const seen = {
    cluster: 'ns/c',
    outage,
    silentSinceMs: 7,
    answeredMs,
    provenMs: 7,
    recoveredMs: undefined,
    lastError: 'w',
  };
  const all = targetClusters({ add: () => undefined, remove: () => Promise.resolve(), state: () => seen });
  const opened = await all.open('ns/c', KUBECONFIG, OPTIONS);

  expect(opened.state).toMatchObject({ kind: 'unreachable', sinceMs: 7, lostSinceMs });
  opened.close();
  await all.stop();
});
