import { spawn } from 'node:child_process';
import { mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import type { Api } from '../control-plane/api.ts';
import { applyManifests, parseManifests, readManifests } from '../control-plane/apply.ts';
import { startControlPlane } from '../control-plane/control-plane.ts';
import { freePort } from '../control-plane/ports.ts';
import { usageOf } from './process-usage.ts';
import { countRequests, difference, sumOf } from './request-count.ts';

/**
 * Measures the main job with the simulated cloud (create 0.2 s, join 0.5 s, delete 0.2 s): API requests for one machine's
 * creation and deletion, wall time, peak memory and CPU for many. `node hack/bench/main.ts [--machines 500] [--keep-logs]`.
 */
const { values } = parseArgs({ options: { machines: { type: 'string', default: '500' }, logs: { type: 'string' } } });
const many = Number(values.machines);
const root = path.resolve(import.meta.dirname, '../..');
const base = '/apis/machine.sapcloud.io/v1alpha1/namespaces/machinist';
const logs = values.logs ?? mkdtempSync(path.join(tmpdir(), 'machinist-bench-'));

const objects = (replicas: number): string => `
apiVersion: v1
kind: Secret
metadata: { name: bench, namespace: machinist }
stringData: { userData: "token <<BOOTSTRAP_TOKEN>>" }
---
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineClass
metadata: { name: bench, namespace: machinist }
provider: sim
providerSpec: {}
secretRef: { name: bench, namespace: machinist }
---
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineDeployment
metadata: { name: bench, namespace: machinist }
spec:
  replicas: ${replicas}
  selector: { matchLabels: { app: bench } }
  strategy: { type: RollingUpdate, rollingUpdate: { maxSurge: 10%, maxUnavailable: 10% } }
  template:
    metadata: { labels: { app: bench } }
    spec: { class: { kind: MachineClass, name: bench } }
`;

function start(name: string, args: readonly string[]): { pid: number; stop: () => Promise<void> } {
  const log = openSync(path.join(logs, `${name}.log`), 'a');
  const child = spawn(process.execPath, args, { stdio: ['ignore', log, log] });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return { pid: child.pid ?? 0, stop: async () => (child.kill('SIGTERM'), ended) };
}

interface MachineItem {
  readonly status?: { readonly currentStatus?: { readonly phase?: string } };
}

async function machinesIn(api: Api): Promise<{ all: number; running: number }> {
  const { body } = await api.request(`${base}/machines?resourceVersion=0`);
  const { items } = body as { items: readonly MachineItem[] }; // a list
  return { all: items.length, running: items.filter((m) => m.status?.currentStatus?.phase === 'Running').length };
}

/** Scales, waits, and resolves with the seconds it took. */
async function scale(api: Api, replicas: number, pollMs: number): Promise<number> {
  const startedMs = performance.now();
  await api.request(`${base}/machinedeployments/bench/scale`, {
    method: 'PATCH',
    contentType: 'application/merge-patch+json',
    body: { spec: { replicas } },
  });
  for (;;) {
    const { all, running } = await machinesIn(api);
    if (all === replicas && running === replicas) return (performance.now() - startedMs) / 1_000;
    await sleep(pollMs);
  }
}

function tell(what: string, rows: readonly [string, number][]): void {
  console.log(`${what}: ${sumOf(rows)} requests`);
  for (const [key, count] of rows) console.log(`  ${String(count).padStart(6)}  ${key}`);
}

await using plane = await startControlPlane({ controllerManager: false, log: (line) => console.error(line) });
const api = plane.connection.api();
await applyManifests(
  api,
  readManifests(path.join(root, 'deploy/manifests')).filter(({ kind }) => kind === 'Namespace'),
);
await applyManifests(api, readManifests(path.join(root, 'crds')));
await applyManifests(api, readManifests(path.join(root, 'deploy/rbac')));
const sockets = mkdtempSync(path.join(tmpdir(), 'machinist-bench-'));
const address = `unix://${path.join(sockets, 'driver.sock')}`;
const driver = start('sim-driver', [
  path.join(root, 'cmd/sim-driver/main.ts'),
  '--address',
  address,
  '--kubeconfig',
  await plane.connection.kubeconfigFor({ user: 'machinist-sim-driver' }),
]);
const own = await plane.connection.kubeconfigFor({ user: 'machinist' });
const manager = start('machinist', [
  path.join(root, 'cmd/machinist/main.ts'),
  'run',
  '--namespace=machinist',
  `--control-kubeconfig=${own}`,
  `--target-kubeconfig=${own}`,
  `--driver=sim=${address}`,
  '--address=127.0.0.1',
  `--port=${await freePort()}`,
]);
try {
  await applyManifests(api, parseManifests(objects(0)));
  await scale(api, 1, 20);
  await scale(api, 0, 20);
  await sleep(3_000);

  const idle = await countRequests(api);
  await sleep(3_000);
  const before = await countRequests(api);
  tell('idle for 3 s', difference(idle, before));
  await scale(api, 1, 1_500);
  await sleep(2_000);
  const created = await countRequests(api);
  tell('one machine created (the scale request and our own polling included)', difference(before, created));
  await scale(api, 0, 1_500);
  await sleep(2_000);
  tell(
    'one machine deleted (the scale request and our own polling included)',
    difference(created, await countRequests(api)),
  );

  const start500 = await countRequests(api);
  const up = await scale(api, many, 250);
  console.log(`${many} machines created in ${up.toFixed(1)} s`);
  await sleep(2_000);
  const after500 = await countRequests(api);
  tell(`${many} machines created`, difference(start500, after500));
  const down = await scale(api, 0, 250);
  console.log(`${many} machines deleted in ${down.toFixed(1)} s`);
  await sleep(2_000);
  tell(`${many} machines deleted`, difference(after500, await countRequests(api)));
  for (const [name, { pid }] of Object.entries({ manager, driver })) {
    const { peakMB, cpuSeconds } = usageOf(pid);
    console.log(`${name}: peak ${peakMB.toFixed(0)} MB, CPU ${cpuSeconds.toFixed(1)} s`);
  }
} finally {
  await manager.stop();
  await driver.stop();
  rmSync(sockets, { recursive: true, force: true });
  await api.close();
}
console.log(`logs: ${logs}`);
