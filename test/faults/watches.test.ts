import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { ControlPlane } from '../../hack/control-plane/control-plane.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { QUICK, SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';
import { sampled } from '../expect/sampled.ts';
import { httpProxyFor } from '../integration/kube-session.ts';

/*
 * The watches that feed the caches stall without an end, or have nobody to talk to for long. Each test prints how long it took to
 * see again. Watches on all kinds stall in simulated worlds: a sample has Machines, Nodes, and another kind. MACHINIST_FAULTS=long: all kinds,
 * with 100 machines.
 */
const IS_LONG = process.env['MACHINIST_FAULTS'] === 'long';
const MACHINES = IS_LONG ? 100 : 1;
const PATIENCE = { timeoutMs: 240_000 };
const TEST_MS = 900_000;
/** Much shorter than what a connection may be silent, much longer than what it takes on a quiet machine. */
const NOTICED = { timeoutMs: 120_000, intervalMs: 100 };
/** That a pause ends once the server answers is shown beside the reflector, by its own clock; a busy host takes long for everything. */
const RECOVERED = { timeoutMs: 120_000, intervalMs: 100 };
const KINDS = [
  'machines',
  'machinesets',
  'machinedeployments',
  'machineclasses',
  'secrets',
  'nodes',
  'volumeattachments',
] as const;
const FLAGS = { 'machine-safety-grace': '0s' };
/** Of machines that are not seen for about as long; those before them may take longer, which on a busy host they do. */
const IN_TIME = { creationTimeout: '20s' };

let site: Site<ControlPlane>;

beforeAll(async () => {
  site = await Site.open();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

/** A pool grows while the watch on one kind has stalled; resolves with the seconds until it was watched anew. */
async function growBlindly(kind: (typeof KINDS)[number]): Promise<{ kind: string; seconds: number; made: number }> {
  await using proxy = await httpProxyFor(site.plane.connection);
  await using cloud = await SimulatedCloud.start({ site, latencyMs: { ...QUICK, create: 100, delete: 100 } });
  await using pool = await Pool.create({ site, cloud, replicas: MACHINES });
  const kubeconfig = await site.kubeconfigThrough(proxy.url);
  await using _manager = await InProcessManager.start({ ...pool.access, kubeconfig, flags: FLAGS });
  await pool.untilUp(MACHINES, PATIENCE);
  await pool.change({ template: { spec: IN_TIME } });
  await eventually(async () => {
    for (const { spec } of await pool.machines()) expect(spec).toMatchObject(IN_TIME);
  }, PATIENCE);

  const isOfKind = ({ verb, resource }: { verb: string; resource: string }): boolean =>
    verb === 'watch' && resource === kind;
  proxy.reset();
  // Between two watches there is none.
  await eventually(() => proxy.stall(isOfKind) > 0, PATIENCE);
  const stalledMs = performance.now();
  const before = proxy.count(isOfKind);
  const [, seconds] = await Promise.all([
    // Only the watch shows a Machine that somebody else has made.
    kind === 'machines' ? pool.addMachine(IN_TIME) : pool.scale(MACHINES + 1),
    eventually(() => proxy.count(isOfKind) > before, NOTICED).then(() => (performance.now() - stalledMs) / 1_000),
  ]);
  await eventually(async () => {
    const phases = (await pool.machines()).map(({ status }) => status?.currentStatus?.phase);
    expect(phases).toEqual(Array.from({ length: MACHINES + 1 }, () => 'Running'));
  }, PATIENCE);
  return { kind, seconds, made: cloud.created.length };
}

test(
  'a watch that stalls without an end is replaced, and machines that were not seen meanwhile do not fail for it',
  async () => {
    const kinds = sampled({
      name: 'watches that stall',
      rows: KINDS,
      nameOf: (kind) => kind,
      kindsOf: (kind) => [kind === 'machines' || kind === 'nodes' ? kind : 'another'],
    });
    const outcomes = [];
    if (IS_LONG) for (const kind of kinds) outcomes.push(await growBlindly(kind));
    else outcomes.push(...(await Promise.all(kinds.map(growBlindly))));

    for (const { kind, seconds } of outcomes)
      process.stdout.write(`${kind}: watched anew after ${seconds.toFixed(1)} s\n`);
    expect(outcomes.map(({ kind, made }) => [kind, made])).toEqual(kinds.map((kind) => [kind, MACHINES + 1]));
  },
  TEST_MS,
);

test(
  'all caches are watched again soon after the API server is back from a long outage',
  async () => {
    await using proxy = await httpProxyFor(site.plane.connection);
    await using cloud = await SimulatedCloud.start({ site });
    await using pool = await Pool.create({ site, cloud, replicas: MACHINES });
    const kubeconfig = await site.kubeconfigThrough(proxy.url);
    await using manager = await InProcessManager.start({ ...pool.access, kubeconfig });
    await pool.untilUp(MACHINES, PATIENCE);
    const { apiserver } = site.plane;
    /** Kinds of which the server has accepted no watch since it was killed. */
    const unwatched = (): string[] =>
      KINDS.filter((kind) => proxy.accepted(({ verb, resource }) => verb === 'watch' && resource === kind) === 0);

    await apiserver.stop('SIGKILL');
    proxy.reset();
    // Long enough for pauses between attempts to grow beyond `RECOVERED` if nothing bounds them.
    await eventually(async () => (await manager.metric('machinist_cluster_outage')) === 1, PATIENCE);
    await apiserver.start();

    const readyMs = performance.now();
    await eventually(async () => expect(await manager.metric('machinist_cluster_outage')).toBe(0), RECOVERED);
    // Work goes on when all is seen, not when some of it answers.
    expect(unwatched()).toEqual([]);
    const seconds = (performance.now() - readyMs) / 1_000;
    process.stdout.write(`all watched again ${seconds.toFixed(1)} s after the API server was ready\n`);
    await pool.scale(MACHINES + 1);
    await pool.untilUp(MACHINES + 1, PATIENCE);
    expect(cloud.created).toHaveLength(MACHINES + 1);
  },
  TEST_MS,
);
