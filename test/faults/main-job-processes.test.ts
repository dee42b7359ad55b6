import { performance } from 'node:perf_hooks';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { CloudProcess } from '../cloud/cloud-process.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { ManagerProcess } from '../cloud/manager-process.ts';
import { Pool } from '../cloud/pool.ts';
import { QUICK, SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';

const PATIENCE = { timeoutMs: 120_000 };
const MACHINES = 12;
const SLOW = { ...QUICK, create: 400, delete: 300, join: 100 };
/** From SIGTERM until the standby leads. Under 2 s where the machine is free; a Lease that nobody gives up takes as long as it lasts. */
const TAKEOVER_MS = 60_000;
const LONG_LEASE = {
  'leader-elect': 'true',
  'leader-elect-lease-duration': '120s',
  'leader-elect-renew-deadline': '100s',
};

let site: Site;

beforeAll(async () => {
  site = await Site.drawn();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

describe('a driver that is killed in the middle of its work and started again', () => {
  test('loses no VM and makes none twice', async () => {
    await using cloud = await CloudProcess.start(site);
    await using pool = await Pool.create({ site, cloud, replicas: MACHINES });
    await using _manager = await InProcessManager.start(pool.access);

    await eventually(async () => (await cloud.vms()).length > 0, { ...PATIENCE, intervalMs: 5 });
    await cloud.kill();
    await cloud.restart();
    const names = await pool.untilUp(MACHINES, PATIENCE);

    expect(cloud.everMade()).toEqual(names);

    await pool.delete();
    await eventually(async () => (await cloud.vms()).length < MACHINES, { ...PATIENCE, intervalMs: 5 });
    await cloud.kill();
    await cloud.restart();
    await pool.untilGone(PATIENCE);

    expect(cloud.everMade()).toEqual(names);
  }, 300_000);
});

describe('a driver call that hangs', () => {
  test('does not keep its machine from being deleted, nor the others from being made', async () => {
    await using cloud = await SimulatedCloud.start({
      site,
      faults: [{ method: 'CreateMachine', effect: 'hang', times: 1 }],
    });
    await using pool = await Pool.create({ site, cloud, replicas: 3 });
    await using _manager = await InProcessManager.start(pool.access);
    await eventually(async () => (await cloud.vms()).length === 2, PATIENCE);
    const made = new Set(cloud.created.map(({ machineName }) => machineName));
    const hanging = (await pool.machines()).map(({ metadata }) => metadata.name).find((name) => !made.has(name)) ?? '';

    await pool.deleteMachine(hanging);
    const names = await pool.untilUp(3, PATIENCE);

    expect(names).not.toContain(hanging);
    expect(cloud.created.map(({ machineName }) => machineName).toSorted()).toEqual(names);
  }, 180_000);
});

describe('a manager process', () => {
  test.each([
    { signal: 'SIGTERM', exitCode: 0 },
    { signal: 'SIGKILL', exitCode: null },
  ] as const)(
    'that gets $signal while it creates and deletes leaves nothing behind',
    async ({ signal, exitCode }) => {
      await using cloud = await SimulatedCloud.start({ site, latencyMs: SLOW });
      await using pool = await Pool.create({ site, cloud, replicas: MACHINES });

      await using first = await ManagerProcess.start(pool.access);
      await eventually(() => (cloud.calls['CreateMachine'] ?? 0) > 0, { ...PATIENCE, intervalMs: 5 });
      expect(await first.end(signal)).toBe(exitCode);

      await using second = await ManagerProcess.start(pool.access);
      const names = await pool.untilUp(MACHINES, PATIENCE);
      await pool.delete();
      // Also if all of them go between two looks: a host may be that slow.
      await eventually(() => cloud.deleted > 0, { ...PATIENCE, intervalMs: 5, describe: 'a VM to be deleted' });
      expect(await second.end(signal)).toBe(exitCode);

      await using _third = await ManagerProcess.start(pool.access);
      await pool.untilGone(PATIENCE);

      expect(cloud.created.map(({ machineName }) => machineName).toSorted()).toEqual(names);
      expect([...cloud.doubled]).toEqual([]);
    },
    300_000,
  );

  test('that is told to stop while VMs are deleted records it, so that its successor asks for no deletion again', async () => {
    const replicas = 5;
    await using cloud = await SimulatedCloud.start({ site, latencyMs: { ...QUICK, delete: 2_000 } });
    await using pool = await Pool.create({ site, cloud, replicas });
    await using first = await InProcessManager.start(pool.access);
    await pool.untilUp(replicas, PATIENCE);
    await pool.delete();
    await eventually(() => cloud.calls['DeleteMachine'] === replicas, { ...PATIENCE, intervalMs: 5 });

    expect(await first.terminate()).toBe(0);
    expect(await cloud.vms()).toEqual([]);
    await using _second = await InProcessManager.start(pool.access);
    await pool.untilGone(PATIENCE);

    expect(cloud.calls['DeleteMachine']).toBe(replicas);
  }, 180_000);

  test('hands over to its standby after SIGTERM, in the middle of its work, before its Lease has run out', async () => {
    await using cloud = await SimulatedCloud.start({ site, latencyMs: SLOW });
    await using pool = await Pool.create({ site, cloud, replicas: MACHINES });
    const options = { ...pool.access, flags: LONG_LEASE };
    const first = await InProcessManager.start(options);
    await eventually(async () => (await pool.leaders()).every((leader) => leader === first.identity), PATIENCE);
    await using standby = await InProcessManager.start(options);
    await eventually(() => (cloud.calls['CreateMachine'] ?? 0) > 0, { ...PATIENCE, intervalMs: 5 });

    const startMs = performance.now();
    const ended = first.terminate();
    await eventually(async () => (await pool.leaders()).every((leader) => leader === standby.identity), {
      ...PATIENCE,
      describe: 'the standby to lead',
    });
    const tookMs = performance.now() - startMs;

    expect(await ended).toBe(0);
    const names = await pool.untilUp(MACHINES, PATIENCE);
    process.stdout.write(`the standby led ${Math.round(tookMs)} ms after SIGTERM\n`);
    expect(tookMs).toBeLessThan(TAKEOVER_MS);
    expect(cloud.created.map(({ machineName }) => machineName).toSorted()).toEqual(names);
  }, 180_000);
});
