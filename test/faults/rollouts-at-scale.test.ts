import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';

import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';

/** How many are rolled; twice as many are made at once. */
const ALL = Number(process.env['MACHINIST_ROLLOUT_MACHINES'] ?? 20);
const MANY = 2 * ALL;
const FEWER = Math.round(ALL * 0.8);
const LIMITS = { maxSurge: '10%', maxUnavailable: '10%' };
const STEP = Math.ceil(ALL / 10);
/** Sizes that follow each other within seconds, and one after the other. */
const [A, B, C, D] = [2, 20, 8, 24] as const;
const SLOWLY = [0.05, 0.5, 0.2, 0.6].map((share) => Math.round(share * ALL));
const HALVES = [
  'machine-deployment,machine-set,safety.overshoot',
  'machine,machine-class,secret,safety.orphan-vms,safety.unmanaged-nodes',
];
const PATIENCE = { timeoutMs: 150_000 };
const TEST_MS = 200_000;

/** The number of VMs made and deleted is what costs money: it must be what the strategy needs, and not one more. */
describe('a pool of many machines, kept by two processes', () => {
  let site: Site;
  let cloud: SimulatedCloud;
  let pool: Pool;
  const programs: InProcessManager[] = [];
  let before: { created: number; deleted: number };

  beforeAll(async () => {
    site = await Site.drawn();
    cloud = await SimulatedCloud.start({ site });
    pool = await Pool.create({ site, cloud, replicas: 0, ...LIMITS });
    for (const controllers of HALVES) {
      programs.push(await InProcessManager.start({ ...pool.access, flags: { controllers } }));
    }
    await pool.untilUp(0);
  }, TEST_MS);

  afterAll(async () => {
    for (const program of programs) await program.terminate();
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
      await pool.scale(MANY);
      await pool.untilUp(MANY, PATIENCE);
      expect(since()).toEqual({ created: MANY, deleted: 0 });

      await pool.scale(FEWER);
      await pool.untilUp(FEWER, PATIENCE);
      expect(since()).toEqual({ created: MANY, deleted: MANY - FEWER });
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
      const old = new Set(cloud.simulation.cloud.all().map(({ machineName }) => machineName));
      const newAtFirstLoss: number[] = [];
      cloud.simulation.cloud.onEvent(({ machineName }, event) => {
        if (event !== 'deleted' || old.has(machineName)) return;
        newAtFirstLoss.push(cloud.simulation.cloud.all().filter((vm) => !old.has(vm.machineName)).length + 1);
      });
      await pool.roll('3');
      await someCreated(STEP);
      await pool.scale(FEWER);
      await pool.untilUp(FEWER, PATIENCE);

      const { created, deleted } = since();
      expect(deleted - created).toBe(ALL - FEWER);
      // Only what the new set gives up as its share is made again; two steps may have been under way when it shrank.
      const share = 1 - (FEWER + Math.ceil(FEWER / 10)) / (ALL + STEP);
      const wasted = Math.ceil(((newAtFirstLoss[0] ?? 0) + 2 * STEP) * share) + 1;
      expect(created).toBeLessThanOrEqual(FEWER + wasted);
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
      const made = since().created;
      await pool.untilUp(ALL, PATIENCE);

      const { created, deleted } = since();
      expect(created).toBe(deleted);
      // What had been made goes, and as many come back; a few steps may pass until the change is seen.
      expect(created).toBeLessThanOrEqual(2 * (made + 3 * STEP));
      expect((await pool.deployment()).spec.template.metadata).toMatchObject({ annotations: { generation: '5' } });
    },
    TEST_MS,
  );

  test(
    'follows its size step by step',
    async () => {
      let [size, made, gone] = [ALL, 0, 0];
      for (const next of SLOWLY) {
        await pool.scale(next);
        await pool.untilUp(next, PATIENCE);
        made += Math.max(0, next - size);
        gone += Math.max(0, size - next);
        size = next;
      }

      expect(since()).toEqual({ created: made, deleted: gone });
    },
    TEST_MS,
  );

  test(
    'follows its size up, down and up again within seconds, by no more than each step would cost',
    async () => {
      await pool.scale(A);
      await pool.untilUp(A, PATIENCE);
      before = { created: cloud.created.length, deleted: cloud.deleted };

      for (const replicas of [B, C, D]) await pool.scale(replicas);
      await pool.untilUp(D, PATIENCE);

      const { created, deleted } = since();
      expect(created - deleted).toBe(D - A);
      expect(created).toBeLessThanOrEqual(B - A + D - C);
      expect([...cloud.doubled]).toEqual([]);
    },
    TEST_MS,
  );
});
