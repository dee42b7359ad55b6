import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { eventually } from '../../test/expect/eventually.ts';
import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { fixedEndpoint } from '../../hack/control-plane/fixed-endpoint.ts';
import { SystemClock } from '../base/clock/system-clock.ts';
import { silentLogger } from '../base/log/logger.ts';
import { clockMetrics } from '../base/metrics/clock.ts';
import { kubeMetrics } from '../base/metrics/kube.ts';
import { type ClustersOptions, openClusters } from './clusters.ts';

const SERVER = 'https://control.invalid:6443';
const KUBECONFIG = {
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [{ name: 'c', cluster: { server: SERVER, 'insecure-skip-tls-verify': true } }],
  users: [{ name: 'u', user: { token: 't' } }],
  contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  'current-context': 'x',
};

test('where an endpoint is given in place of a kubeconfig, no file is asked for', async () => {
  const registry = new Registry();
  const given = fixedEndpoint(SERVER, {});
  const flags = { controlKubeconfig: 'control', targetKubeconfig: 'control', namespace: 'ns' };

  const { control } = await openClusters({ clusters: flags, leases: new Set(['machine-controller']) }, [], {
    ...optionsWith(registry),
    openEndpoint: (kubeconfig) => ({ ...given, namespace: kubeconfig }),
  });

  expect({ server: control.server, namespace: control.endpoint.namespace }).toEqual({
    server: SERVER,
    namespace: 'control',
  });
  await control.transport.close();
});

test('a process without target cluster, of which no flag names the cluster, finds it as kubectl does', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'machinist-clusters-'));
  const file = path.join(folder, 'kubeconfig');
  await writeFile(file, JSON.stringify(KUBECONFIG));
  const registry = new Registry();
  const flags = { controlKubeconfig: '', targetKubeconfig: 'none', namespace: 'ns' };

  const { control, target } = await openClusters({ clusters: flags, leases: new Set(['ironcore-scheduler']) }, [], {
    ...optionsWith(registry),
    env: { KUBECONFIG: file },
  });

  expect({ server: control.server, target }).toEqual({ server: SERVER, target: undefined });
  await control.transport.close();
  await rm(folder, { recursive: true });
});

test.each([{ server: 'https://other.invalid' }, { 'proxy-url': 'http://proxy.invalid' }])(
  'who is told that the kubeconfig of the target cluster has come to name $server $proxy-url goes on by the way that it has',
  async (changed) => {
    const folder = await mkdtemp(path.join(tmpdir(), 'machinist-clusters-'));
    const files = { control: path.join(folder, 'control'), target: path.join(folder, 'target') };
    for (const file of Object.values(files)) await writeFile(file, JSON.stringify(KUBECONFIG));
    const clock = new FakeClock();
    let moves = 0;
    const flags = { controlKubeconfig: files.control, targetKubeconfig: files.target, namespace: 'ns' };
    const { control, target } = await openClusters({ clusters: flags, leases: new Set() }, [], {
      ...optionsWith(new Registry()),
      clock,
      targetMoved: () => moves++,
    });
    const before = [await control.endpoint.credentials(), await target?.endpoint.credentials()];

    const [{ name, cluster } = { name: '', cluster: {} }] = KUBECONFIG.clusters;
    const other = { ...KUBECONFIG, clusters: [{ name, cluster: { ...cluster, ...changed } }] };
    for (const file of Object.values(files)) await writeFile(file, JSON.stringify(other));
    clock.advance(60_000);
    for (const access of [control, target]) await access?.endpoint.credentials();

    await eventually(() => expect(moves).toBe(1));
    expect(target?.endpoint.url).toBe(SERVER);
    expect(await target?.endpoint.credentials()).toBe(before[1]);
    // That of the control cluster is used: its identity is compared afterwards.
    await eventually(async () => {
      const { url } = control.endpoint;
      const { connection } = await control.endpoint.credentials();
      expect([url, connection]).not.toEqual([SERVER, before[0]?.connection]);
    });
    for (const access of [control, target]) await access?.transport.close();
    await rm(folder, { recursive: true });
  },
);

test('one kubeconfig of the control cluster and of the target cluster is that of the target cluster', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'machinist-clusters-'));
  const file = path.join(folder, 'both');
  await writeFile(file, JSON.stringify(KUBECONFIG));
  const clock = new FakeClock();
  let moves = 0;
  const flags = { controlKubeconfig: file, targetKubeconfig: file, namespace: 'ns' };
  const { control, target } = await openClusters({ clusters: flags, leases: new Set() }, [], {
    ...optionsWith(new Registry()),
    clock,
    targetMoved: () => moves++,
  });
  const before = await control.endpoint.credentials();

  await writeFile(file, JSON.stringify(KUBECONFIG).replace(SERVER, 'https://other.invalid'));
  clock.advance(60_000);
  await control.endpoint.credentials();

  await eventually(() => expect(moves).toBe(1));
  expect(target).toBe(control);
  expect(control.endpoint.url).toBe(SERVER);
  expect(await control.endpoint.credentials()).toBe(before);
  await control.transport.close();
  await rm(folder, { recursive: true });
});

function optionsWith(registry: Registry): ClustersOptions {
  return {
    userAgent: 'test',
    env: {},
    qps: 1,
    burst: 1,
    clock: new SystemClock(),
    log: silentLogger,
    metrics: kubeMetrics(registry),
    clockMetrics: clockMetrics(registry),
  };
}
