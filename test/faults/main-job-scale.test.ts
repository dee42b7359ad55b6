import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';

import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';

/** How many machines swing at most. */
const PEAK = process.env['MACHINIST_FAULTS'] === 'long' ? 100 : 12;
const PATIENCE = { timeoutMs: 120_000 };

let site: Site;

beforeAll(async () => {
  site = await Site.drawn();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

describe('sixty machines', () => {
  let cloud: SimulatedCloud;
  let pool: Pool;
  let manager: InProcessManager;

  beforeAll(async () => {
    cloud = await SimulatedCloud.start({ site });
    pool = await Pool.create({ site, cloud, replicas: 0 });
    manager = await InProcessManager.start(pool.access);
    await pool.untilUp(0);
  });

  afterAll(async () => {
    await manager.terminate();
    await pool[Symbol.asyncDispose]();
    await cloud[Symbol.asyncDispose]();
  });

  let before: { created: number; deleted: number };
  beforeEach(() => {
    before = { created: cloud.created.length, deleted: cloud.deleted };
  });
  const since = (): { created: number; deleted: number } => ({
    created: cloud.created.length - before.created,
    deleted: cloud.deleted - before.deleted,
  });

  test('are made by sixty creations', async () => {
    await pool.scale(60);

    await pool.untilUp(60, PATIENCE);

    expect(since()).toEqual({ created: 60, deleted: 0 });
    expect(cloud.calls['CreateMachine']).toBe(60);
  });

  test('become fifty by at most what each step of a quick change costs', async () => {
    await pool.scale(20);
    await pool.scale(50);

    await pool.untilUp(50, PATIENCE);

    const { created, deleted } = since();
    expect(deleted - created).toBe(10);
    expect(deleted).toBeLessThanOrEqual(40);
    expect(cloud.calls['CreateMachine']).toBe(60 + created);
  });

  test('that come and go are created no more once fewer are wanted', async () => {
    await pool.scale(60);
    await eventually(() => since().created > 0, { timeoutMs: 120_000, describe: 'the first creation' });
    await pool.scale(20);

    await pool.untilUp(20, PATIENCE);

    const { created, deleted } = since();
    expect(created).toBeLessThanOrEqual(10);
    expect(deleted - created).toBe(30);
  });

  test('are replaced each by one creation, and never more than two of twenty are missing', async () => {
    await pool.untilUp(20);
    const { cloud: vms } = cloud.simulation;
    let fewest = Infinity;
    vms.onEvent((_vm, event) => {
      if (event !== 'deleted') return;
      const running = vms
        .all()
        .filter(({ joinsAtMs = Infinity }) => joinsAtMs <= performance.timeOrigin + performance.now());
      fewest = Math.min(fewest, running.length);
    });

    await pool.roll('2', { maxSurge: '10%', maxUnavailable: '10%' });
    const names = await pool.untilUp(20, PATIENCE);

    expect(since()).toEqual({ created: 20, deleted: 20 });
    expect(names).toEqual(
      cloud.created
        .slice(-20)
        .map(({ machineName }) => machineName)
        .toSorted(),
    );
    expect(fewest).toBeGreaterThanOrEqual(18);
    expect([...cloud.doubled]).toEqual([]);
  });

  test('all go when their pool is deleted', async () => {
    const calls = cloud.calls['DeleteMachine'] ?? 0;
    await pool.delete();

    await pool.untilGone(PATIENCE);

    // Of machines that came and went before their VM was asked for, the driver was told too.
    expect(since()).toEqual({ created: 0, deleted: 20 });
    expect((cloud.calls['DeleteMachine'] ?? 0) - calls).toBe(20);
  });
});

test('a number that swings every three seconds costs hardly a VM more than its peak', async () => {
  await using cloud = await SimulatedCloud.start({ site });
  const sizes = [2, 10, 4, 12, 2, 8, 5].map((size) => Math.ceil((size * PEAK) / 12));
  const [first = 0] = sizes;
  await using pool = await Pool.create({ site, cloud, replicas: first });
  await using _manager = await InProcessManager.start(pool.access);
  await pool.untilUp(first, PATIENCE);
  for (const size of sizes.slice(1)) {
    await pool.scale(size);
    await sleep(3_000);
  }

  await pool.untilUp(sizes.at(-1) ?? 0, PATIENCE);

  // Obeying each fall at once makes twice as many (2 + 8 + 8 + 6 of 12). What has no VM yet when fewer are wanted is given up, call or
  // not: on a busy machine that is more than on a quiet one, where hardly any is.
  expect(cloud.created.length).toBeLessThanOrEqual(PEAK + PEAK / 2);
  expect([...cloud.doubled]).toEqual([]);
}, 200_000);
