import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { SystemClock } from '../clock/system-clock.ts';
import { silentLogger } from '../log/logger.ts';
import { clockMetrics } from '../metrics/clock.ts';
import { kubeMetrics } from '../metrics/kube.ts';
import { openClusters } from './clusters.ts';

const SERVER = 'https://control.invalid:6443';
const KUBECONFIG = {
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [{ name: 'c', cluster: { server: SERVER, 'insecure-skip-tls-verify': true } }],
  users: [{ name: 'u', user: { token: 't' } }],
  contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  'current-context': 'x',
};

test('a process without target cluster, of which no flag names the cluster, finds it as kubectl does', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'machinist-clusters-'));
  const file = path.join(folder, 'kubeconfig');
  await writeFile(file, JSON.stringify(KUBECONFIG));
  const registry = new Registry();
  const flags = { controlKubeconfig: '', targetKubeconfig: 'none', namespace: 'ns' };

  const { control, target } = await openClusters(
    { clusters: flags, leases: new Set(['ironcore-scheduler']) },
    {
      userAgent: 'test',
      env: { KUBECONFIG: file },
      qps: 1,
      burst: 1,
      clock: new SystemClock(),
      log: silentLogger,
      metrics: kubeMetrics(registry),
      clockMetrics: clockMetrics(registry),
    },
  );

  expect({ server: control.server, target }).toEqual({ server: SERVER, target: undefined });
  await control.transport.close();
  await rm(folder, { recursive: true });
});
