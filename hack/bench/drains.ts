import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

import type { Api } from '../control-plane/api.ts';
import { applyManifests, parseManifests } from '../control-plane/apply.ts';
import { number, readOptions } from '../options.ts';
import { startBed } from './bed.ts';
import { usageOf } from './process-usage.ts';
import { WORKLOAD } from './workload.ts';

/**
 * Whether drains that cannot go on slow down creations: the time from `replicas: 0` to so many machines available, in turn
 * without and with blocked drains beside it, with the default number of workers (50).
 */
const { blocked, created, rounds } = readOptions('Measures whether blocked drains slow down creations.', {
  blocked: number('drains that are blocked', 200),
  created: number('machines created at the same time', 100),
  rounds: number('rounds, each without and with blocked drains', 3),
});
const BASE = '/apis/machine.sapcloud.io/v1alpha1/namespaces/machinist';
const PODS = '/api/v1/namespaces/machinist/pods';
const BUDGETS = '/apis/policy/v1/namespaces/machinist/poddisruptionbudgets';
const DEPLOYMENT = `${BASE}/machinedeployments/bench`;

await using bed = await startBed({ credentials: 'user' });
const { api, port } = bed;
await applyManifests(api, parseManifests(WORKLOAD));
await create(api, created); // warms up
await create(api, 0);
const without: string[] = [];
for (let round = 0; round < rounds; round++) without.push(await timed(api));
console.log(`${created} created beside nothing: ${without.join(', ')}`);

await block(api);
const beside: string[] = [];
for (let round = 0; round < rounds; round++) beside.push(await timed(api));
console.log(
  `${created} created beside ${await metric('machinist_activities_running{kind="drain"}')} drains: ${beside.join(', ')}`,
);

/** Machines with a pod each, under a budget that allows no eviction, being deleted. */
async function block(to: Api): Promise<void> {
  await to.send('POST', '/api/v1/namespaces/machinist/serviceaccounts', { metadata: { name: 'default' } });
  const names = Array.from({ length: blocked }, (_, i) => `blocked-${i}`);
  for (const name of names) {
    const spec = { class: { kind: 'MachineClass', name: 'first' } };
    const head = { apiVersion: 'machine.sapcloud.io/v1alpha1', kind: 'Machine' };
    await to.send('POST', `${BASE}/machines`, { ...head, metadata: { name }, spec });
  }
  await until(async () => (await phases(to)).filter((phase) => phase === 'Running').length === blocked);
  for (const name of names) {
    await to.send('POST', PODS, {
      metadata: { name, labels: { app: 'blocked' } },
      spec: { nodeName: name, containers: [{ name: 'c', image: 'registry.example/c:1' }] },
    });
  }
  const spec = { minAvailable: blocked, selector: { matchLabels: { app: 'blocked' } } };
  await to.send('POST', BUDGETS, { metadata: { name: 'closed' }, spec });
  const judged = { observedGeneration: 1, expectedPods: blocked, currentHealthy: blocked, desiredHealthy: blocked };
  await to.send('PATCH', `${BUDGETS}/closed/status`, { status: { ...judged, disruptionsAllowed: 0 } });
  for (const name of names) await to.send('DELETE', `${BASE}/machines/${name}`);
  await until(async () => (await metric('machinist_activities_running{kind="drain"}')) === blocked);
}

/** Seconds until all are available, the manager's CPU seconds, and how long a key waited for a worker meanwhile, on the average. */
async function timed(to: Api): Promise<string> {
  const before = await waited();
  const cpuBefore = usageOf(bed.pids['manager'] ?? 0).cpuSeconds;
  const startedMs = performance.now();
  await create(to, created);
  const seconds = (performance.now() - startedMs) / 1_000;
  const after = await waited();
  const cpu = usageOf(bed.pids['manager'] ?? 0).cpuSeconds - cpuBefore;
  await create(to, 0);
  const each = (1_000 * (after.seconds - before.seconds)) / (after.keys - before.keys);
  return `${seconds.toFixed(1)} s (CPU ${cpu.toFixed(1)} s, ${each.toFixed(0)} ms for a worker)`;
}

async function waited(): Promise<{ readonly seconds: number; readonly keys: number }> {
  const of = (part: string): Promise<number> => metric(`mcm_workqueue_queue_duration_seconds_${part}{name="machine"}`);
  return { seconds: await of('sum'), keys: await of('count') };
}

/** Asks for so many machines and resolves when they are available. */
async function create(to: Api, replicas: number): Promise<void> {
  await to.send('PATCH', DEPLOYMENT, { spec: { replicas } });
  await until(async () => {
    const { metadata, status = {} } = await to.send<DeploymentItem>('GET', DEPLOYMENT);
    const { observedGeneration, availableReplicas = 0 } = status;
    return (
      observedGeneration === metadata.generation &&
      (status.replicas ?? 0) === replicas &&
      availableReplicas === replicas
    );
  });
}

async function phases(of: Api): Promise<(string | undefined)[]> {
  interface Item {
    readonly status?: { readonly currentStatus?: { readonly phase?: string } };
  }
  const { items } = await of.send<{ items: Item[] }>('GET', `${BASE}/machines?resourceVersion=0`);
  return items.map(({ status }) => status?.currentStatus?.phase);
}

async function metric(series: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${series} `))
      ?.split(' ')[1],
  );
}

interface DeploymentItem {
  readonly metadata: { readonly generation: number };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly availableReplicas?: number;
  };
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(100);
}
