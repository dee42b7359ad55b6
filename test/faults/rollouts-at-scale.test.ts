import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';

import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';

/** MACHINIST_ROLLOUT_MACHINES=100 makes it the pool that is meant; all counts follow from the number. */
const ALL = Number(process.env['MACHINIST_ROLLOUT_MACHINES'] ?? 20);
const FEWER = Math.round(ALL * 0.8);
const LIMITS = { maxSurge: '10%', maxUnavailable: '10%' };
/** Changes of size within seconds: 5, 50, 20 and 60 of a hundred. */
const [A, B, C, D] = [0.05, 0.5, 0.2, 0.6].map((share) => Math.round(share * ALL)) as [number, number, number, number];
const STEP = Math.ceil(ALL / 10);
const PATIENCE = { timeoutMs: 150_000 };
const TEST_MS = 200_000;

/** The number of VMs made and deleted is what costs money: it must be what the strategy needs, and not one more. */
describe('a pool of many machines', () => {
  let site: Site;
  let cloud: SimulatedCloud;
  let pool: Pool;
  let manager: InProcessManager;
  let before: { created: number; deleted: number };

  beforeAll(async () => {
    site = await Site.open();
    cloud = await SimulatedCloud.start({ site });
    pool = await Pool.create({ site, cloud, replicas: 0, ...LIMITS });
    manager = await InProcessManager.start(pool.access);
    await pool.untilUp(0);
  }, TEST_MS);

  afterAll(async () => {
    await manager.terminate();
    await pool[Symbol.asyncDispose]();
    await cloud[Symbol.asyncDispose]();
    await site[Symbol.asyncDispose]();
  }, TEST_MS);

  beforeEach(() => {
    before = { created: cloud.created.length, deleted: cloud.deleted };
  });

  const since = (): { created: number; deleted: number } => ({
    created: cloud.created.length - before.created,
    deleted: cloud.deleted - before.deleted,
  });
  const someCreated = (count: number): Promise<unknown> =>
    eventually(() => since().created >= count, { ...PATIENCE, intervalMs: 5, describe: `${count} new VMs` });
  const template = (generation: string): Record<string, unknown> => ({ metadata: { annotations: { generation } } });

  test(
    'grows by as many as are missing, and shrinks by as many as are too many',
    async () => {
      await pool.scale(ALL);
      await pool.untilUp(ALL, PATIENCE);
      expect(since()).toEqual({ created: ALL, deleted: 0 });

      await pool.scale(FEWER);
      await pool.untilUp(FEWER, PATIENCE);
      expect(since()).toEqual({ created: ALL, deleted: ALL - FEWER });
    },
    TEST_MS,
  );

  test(
    'changes template and size in one update, each machine replaced once',
    async () => {
      await pool.change({ replicas: ALL, template: template('2') });
      await pool.untilUp(ALL, PATIENCE);

      expect(since()).toEqual({ created: ALL, deleted: FEWER });
    },
    TEST_MS,
  );

  test(
    'is scaled down while it rolls',
    async () => {
      cloud.peak = 0;
      await pool.roll('3');
      await someCreated(STEP);
      await pool.scale(FEWER);
      await pool.untilUp(FEWER, PATIENCE);

      const { created, deleted } = since();
      expect(deleted - created).toBe(ALL - FEWER);
      // Those of the new template that exist when the pool shrinks give up their share.
      expect(created).toBeLessThanOrEqual(ALL);
      expect(cloud.peak).toBeLessThanOrEqual(ALL + STEP);
    },
    TEST_MS,
  );

  test(
    'is scaled up while it rolls',
    async () => {
      await pool.roll('4');
      await someCreated(STEP);
      await pool.scale(ALL);
      await pool.untilUp(ALL, PATIENCE);

      expect(since()).toEqual({ created: ALL, deleted: FEWER });
    },
    TEST_MS,
  );

  test(
    'stands still while it is paused, and goes on',
    async () => {
      await pool.roll('5');
      await someCreated(STEP);
      await pool.change({ paused: true });
      await eventually(async () => {
        const conditions = (await pool.deployment()).status?.conditions ?? [];
        expect(conditions.map(({ reason }) => reason)).toContain('DeploymentPaused');
      }, PATIENCE);
      const paused = await machinesAtRest();
      await pool.change({ paused: false });
      await pool.untilUp(ALL, PATIENCE);

      expect(paused).toBeLessThan(2 * ALL);
      expect(since()).toEqual({ created: ALL, deleted: ALL });
    },
    TEST_MS,
  );

  /** The number of VMs made so far, once every machine that exists runs and none is going. */
  async function machinesAtRest(): Promise<number> {
    return await eventually(async () => {
      const machines = await pool.machines();
      const isSettled = machines.every(
        ({ metadata, status }) =>
          metadata.deletionTimestamp === undefined && status?.currentStatus?.phase === 'Running',
      );
      expect(isSettled).toBe(true);
      return since().created;
    }, PATIENCE);
  }

  test(
    'is rolled back half-way: only what had been replaced is replaced again',
    async () => {
      await pool.roll('6');
      await someCreated(STEP);
      await pool.change({ rollbackTo: { revision: 0 } });
      await pool.untilUp(ALL, PATIENCE);

      const { created, deleted } = since();
      const template6 = cloud.created.slice(before.created).length;
      expect(created).toBe(deleted);
      expect(template6).toBeLessThan(2 * ALL);
      expect((await pool.deployment()).spec.template.metadata).toMatchObject({ annotations: { generation: '5' } });
    },
    TEST_MS,
  );

  test(
    'follows its size up, down and up again within seconds',
    async () => {
      await pool.scale(A);
      await pool.untilUp(A, PATIENCE);
      before = { created: cloud.created.length, deleted: cloud.deleted };

      for (const replicas of [B, C, D]) await pool.scale(replicas);
      await pool.untilUp(D, PATIENCE);
      const quick = since();
      for (const replicas of [A, B, C, D]) {
        await pool.scale(replicas);
        await pool.untilUp(replicas, PATIENCE);
      }
      const slow = { created: since().created - quick.created, deleted: since().deleted - quick.deleted };

      expect(quick.created - quick.deleted).toBe(D - A);
      expect(quick.created).toBeLessThanOrEqual(B - A + D - C);
      expect(slow).toEqual({ created: B - A + D - C, deleted: D - A + B - C });
      expect([...cloud.doubled]).toEqual([]);
    },
    TEST_MS,
  );
});
