import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { Interceptor } from '../../pkg/kube/gate/interceptor.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { QUICK, SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { Workload } from '../cloud/workload.ts';
import { eventually } from '../expect/eventually.ts';

const PATIENCE = { timeoutMs: 90_000, intervalMs: 200 };
const BLOCKED = 12;
const CREATED = 6;
/** Far fewer than drains. */
const WORKERS = '2';

let site: Site;

beforeAll(async () => {
  site = await Site.drawn();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

describe('departure: a drain holds no worker (the original: one of 50, for hours; MCM 943, MCM 490)', () => {
  test('so that blocked drains delay neither creations nor other deletions, with fewer workers than drains', async () => {
    await using cloud = await SimulatedCloud.start({ site });
    await using pool = await Pool.create({ site, cloud, replicas: 0 });
    const workload = await Workload.open(site.api, pool.namespace);
    const flags = { 'machine-concurrent-syncs': WORKERS };
    await using manager = await InProcessManager.start({ ...pool.access, flags });
    const blocked = await many(BLOCKED, () => pool.addMachine());
    for (const name of blocked) await workload.pod(name);
    await workload.forbidEvictions(BLOCKED);
    for (const name of blocked) await pool.deleteMachine(name);
    const drains = (): Promise<number> => manager.metric('machinist_activities_running', 'kind="drain"');
    await eventually(async () => expect(await drains()).toBe(BLOCKED), PATIENCE);

    const created = await many(CREATED, () => pool.addMachine());
    const [quick = ''] = created;
    await pool.deleteMachine(quick);
    await eventually(async () => expect(namesOf(await pool.machines())).not.toContain(quick), PATIENCE);
    await eventually(async () => {
      expect(await manager.metric('mcm_workqueue_unfinished_work_seconds', 'name="machine"')).toBe(0);
      expect(await manager.metric('mcm_workqueue_depth', 'name="machine"')).toBe(0);
    }, PATIENCE);

    expect(await drains()).toBe(BLOCKED);
    expect((await workload.pods()).filter(({ metadata }) => metadata.deletionTimestamp !== undefined)).toEqual([]);
    expect(cloud.created).toHaveLength(BLOCKED + CREATED);
    expect(cloud.deleted).toBe(1);

    for (const name of blocked) await pool.label(name, { 'force-deletion': 'true' });
    for (const name of created.slice(1)) await pool.deleteMachine(name);
    await pool.untilEmpty(PATIENCE);
  }, 300_000);
});

describe('departure: one deadline for a drain, from its persisted start (the original: from that of the process)', () => {
  test('a restart neither hurts the pods nor gives the drain more time, and the Machine says all along what holds it up', async () => {
    await using cloud = await SimulatedCloud.start({ site });
    await using pool = await Pool.create({ site, cloud, replicas: 0 });
    const workload = await Workload.open(site.api, pool.namespace);
    const first = await InProcessManager.start(pool.access);
    const name = await pool.addMachine({ drainTimeout: '1h' });
    await workload.pod(name);
    await workload.forbidEvictions(1);
    await pool.deleteMachine(name);
    const told = await toldOf(pool, name, 'Waiting for 1 pod: ');
    await first.terminate();
    await workload.pod(name);

    await using _second = await InProcessManager.start(pool.access);
    const toldAgain = await toldOf(pool, name, 'Waiting for 2 pods: ');
    const pods = await workload.pods();
    await pool.label(name, { 'force-deletion': 'true' });
    await pool.untilEmpty(PATIENCE);

    const endMs = Date.parse(told.metadata.deletionTimestamp ?? '') + 60 * 60_000;
    const end = new Date(endMs).toISOString().replace('.000Z', 'Z');
    for (const { status } of [told, toldAgain]) {
      expect(status.lastOperation?.description).toContain(
        `(pod disruption budget ${pool.namespace}/closed is misconfigured and requires zero voluntary evictions: correct it).` +
          ` Remaining pods are deleted at ${end}. Initiate node drain`,
      );
    }
    expect(pods.map(({ metadata }) => metadata.deletionTimestamp)).toEqual([undefined, undefined]);
    expect(await workload.pods()).toEqual([]);
  }, 180_000);
});

describe('departure: a machine that is deleted while it is created leaves nothing, its late Node neither', () => {
  test('a Node that joins while its VM is deleted goes with it', async () => {
    // Its kubelet comes when the test says so: while DeleteMachine, which waits for it, is under way.
    await using cloud = await SimulatedCloud.start({ site, latencyMs: { ...QUICK, join: 3_600_000 } });
    await using pool = await Pool.create({ site, cloud, replicas: 0 });
    const [asked, joined] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const interceptDriver: Interceptor = async ({ text }, send) => {
      if (text.startsWith('DRIVER delete_machine')) {
        asked.resolve();
        await joined.promise;
      }
      return await send();
    };
    await using _manager = await InProcessManager.start({ ...pool.access, hooks: { interceptDriver } });
    const name = await pool.postMachine();
    await eventually(async () => (await pool.machine(name)).status?.currentStatus?.phase === 'Pending', PATIENCE);
    const [vm] = await cloud.vms();

    await pool.deleteMachine(name);
    await asked.promise;
    await site.api.send('POST', '/api/v1/nodes', { metadata: { name }, spec: { providerID: vm?.providerID } });
    expect(await pool.nodes()).toHaveLength(1);
    joined.resolve();
    await pool.untilEmpty(PATIENCE);

    expect(cloud.created).toHaveLength(1);
  }, 180_000);
});

async function many<T>(count: number, make: () => Promise<T>): Promise<T[]> {
  return await Promise.all(Array.from({ length: count }, make));
}

function namesOf(machines: readonly Machine[]): string[] {
  return machines.map(({ metadata }) => metadata.name);
}

/** The machine, once it says this of its drain. */
async function toldOf(
  pool: Pool,
  name: string,
  text: string,
): Promise<Machine & { status: NonNullable<Machine['status']> }> {
  return await eventually(async () => {
    const machine = await pool.machine(name);
    const { status } = machine;
    const { description = '' } = status?.lastOperation ?? {};
    if (status === undefined || !description.startsWith(text)) throw new Error(`it says: ${description}`);
    return { ...machine, status };
  }, PATIENCE);
}
