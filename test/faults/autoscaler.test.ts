import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import type { FaultRule } from '../../packages/providers/sim/faults.ts';
import { PODS_PER_MACHINE, ScaledGroups } from '../cloud/node-groups.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';

/*
 * Each test has groups of its own names: VMs of two clouds have the same ids otherwise, and Nodes of one are taken for those of the other.
 */
const PATIENCE = { timeoutMs: 90_000 };
const HOUR_MS = 3_600_000;
/** Waits for nodes until the test skips that time. */
const UNTIL_SKIPPED = { maxNodeProvisionMs: HOUR_MS, nodeGroupBackoffMs: 100 * HOUR_MS };
/** A creation that may yet succeed: the autoscaler waits. */
const NOT_NOW = {
  method: 'CreateMachine',
  effect: 'fail',
  code: 'Unavailable',
  retryAfterMs: HOUR_MS,
} as const satisfies FaultRule;

/*
 * The main job, driven by a model of the cluster-autoscaler: which VMs were made, and which were deleted. No VM may go that the
 * autoscaler has not named, and none may stay.
 */
let site: Site;

beforeAll(async () => {
  site = await Site.open({ controllerManager: true });
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

/** Names of machines whose VMs are gone. */
function goneFrom({ created, removed }: SimulatedCloud): readonly string[] {
  return created.filter(({ providerID }) => removed.includes(providerID)).map(({ machineName }) => machineName);
}

describe('an autoscaler', () => {
  test('makes 10 machines for pods that wait, and only those go that it names, until none is left', async () => {
    await using cloud = await SimulatedCloud.start({ site, nodeLeases: true });
    await using groups = await ScaledGroups.create({ site, cloud, groups: { workers: { min: 0, max: 10 } } });
    await using _manager = await groups.manager();
    await using _autoscaler = groups.autoscaler();

    await groups.scalePods(10 * PODS_PER_MACHINE);
    await groups.untilSizes({ workers: 10 });
    await groups.scalePods(3 * PODS_PER_MACHINE);
    await groups.untilSizes({ workers: 3 });
    const shrunk = goneFrom(cloud);
    await groups.scalePods(0);
    await groups.untilSizes({ workers: 0 });

    expect(shrunk).toHaveLength(7);
    expect(goneFrom(cloud).filter((name) => !groups.named.includes(name))).toEqual([]);
    expect(cloud.created).toHaveLength(10);
    expect([...cloud.doubled]).toEqual([]);
  });

  test('takes another group when the first has no capacity, and leaves nothing behind there', async () => {
    const faults = [
      { method: 'CreateMachine', effect: 'fail', code: 'ResourceExhausted', machines: 'a-spot-.*' } as const,
    ];
    await using cloud = await SimulatedCloud.start({ site, nodeLeases: true, faults });
    const limits = { min: 0, max: 5 };
    await using groups = await ScaledGroups.create({ site, cloud, groups: { 'a-spot': limits, 'b-steady': limits } });
    await using _manager = await groups.manager();
    await using _autoscaler = groups.autoscaler({ nodeGroupBackoffMs: 600_000 });

    await groups.scalePods(3 * PODS_PER_MACHINE);
    await groups.untilSizes({ 'a-spot': 0, 'b-steady': 3 });

    expect(groups.said.join('\n')).toMatch(/a-spot is left alone for a while: ResourceExhausted/);
    expect(cloud.created).toHaveLength(3);
    expect(cloud.deleted).toBe(0);
  });

  test('loses and doubles nothing when it and the manager die as soon as they are about to change something', async () => {
    await using cloud = await SimulatedCloud.start({ site, nodeLeases: true });
    await using groups = await ScaledGroups.create({ site, cloud, groups: { workers: { min: 1, max: 5 } } });
    for (const { pods, size } of [
      { pods: 5 * PODS_PER_MACHINE, size: 5 },
      { pods: 2 * PODS_PER_MACHINE, size: 2 },
      { pods: 4 * PODS_PER_MACHINE, size: 4 },
      { pods: 0, size: 1 },
    ]) {
      await groups.scalePods(pods);
      await dieAtOnce(groups);
      await using _manager = await groups.manager();
      await using _autoscaler = groups.autoscaler();
      await groups.untilSizes({ workers: size });
    }

    expect(goneFrom(cloud).filter((name) => !groups.named.includes(name))).toEqual([]);
    expect([...cloud.doubled]).toEqual([]);
  });

  test('takes back the whole of an increase of which a part has come, and what has come stays', async () => {
    await using cloud = await SimulatedCloud.start({ site, nodeLeases: true });
    await using groups = await ScaledGroups.create({ site, cloud, groups: { partly: { min: 0, max: 6 } } });
    await using _manager = await groups.manager();
    await using _autoscaler = groups.autoscaler(UNTIL_SKIPPED);
    cloud.simulation.faults.set([{ ...NOT_NOW, times: 2 }]);

    await groups.scalePods(6 * PODS_PER_MACHINE);
    await groups.untilRunning(4);
    cloud.simulation.faults.set([NOT_NOW]);
    groups.skippedMs = 2 * HOUR_MS;
    await groups.untilSizes({ partly: 4 });

    expect(groups.asked).toContainEqual({ method: 'decreaseTargetSize', group: 'partly', by: -6 });
    expect(cloud.created).toHaveLength(4);
    expect(cloud.deleted).toBe(0);
  });

  test('whose list of instances is old takes back what a person has added, and no machine that has joined', async () => {
    await using cloud = await SimulatedCloud.start({ site, nodeLeases: true });
    await using groups = await ScaledGroups.create({ site, cloud, groups: { added: { min: 0, max: 6 } } });
    await using _manager = await groups.manager();
    await using _autoscaler = groups.autoscaler({ ...UNTIL_SKIPPED, instanceCacheMs: Infinity });
    await groups.scalePods(2 * PODS_PER_MACHINE);
    await groups.untilSizes({ added: 2 });
    cloud.simulation.faults.set([NOT_NOW]);

    await groups.scaleGroup('added', 4);
    await eventually(() => {
      groups.skippedMs += 2 * HOUR_MS;
      expect(groups.asked).toContainEqual({ method: 'decreaseTargetSize', group: 'added', by: -2 });
    }, PATIENCE);
    await groups.untilSizes({ added: 2 });

    expect(cloud.deleted).toBe(0);
  });

  test('that does not get every second answer asks again, and is obeyed once', async () => {
    await using cloud = await SimulatedCloud.start({ site, nodeLeases: true });
    await using groups = await ScaledGroups.create({ site, cloud, groups: { unheard: { min: 2, max: 6 } } });
    await using _manager = await groups.manager();
    await using _autoscaler = groups.autoscaler({ nodeGroupBackoffMs: 1_000 });
    groups.losesAnswers = true;

    await groups.scalePods(6 * PODS_PER_MACHINE);
    await groups.untilSizes({ unheard: 6 });
    await groups.scalePods(0);
    await groups.untilSizes({ unheard: 2 });

    expect(groups.said.join('\n')).toMatch(/stays: Error: the answer to deleteNodes is lost/);
    expect(goneFrom(cloud).filter((name) => !groups.named.includes(name))).toEqual([]);
    expect(cloud.created).toHaveLength(6);
  });

  test('that starts anew while machines go chooses them again, which costs no other', async () => {
    const faults = [
      { method: 'DeleteMachine', effect: 'fail', code: 'Unavailable', retryAfterMs: 500 } as const, // until the end of the test
    ];
    await using cloud = await SimulatedCloud.start({ site, nodeLeases: true, faults });
    await using groups = await ScaledGroups.create({ site, cloud, groups: { chosen: { min: 0, max: 4 } } });
    await using _manager = await groups.manager();
    {
      await using _before = groups.autoscaler();
      await groups.scalePods(4 * PODS_PER_MACHINE);
      await groups.untilRunning(4);
      await groups.scalePods(0);
      await eventually(() => expect(new Set(groups.named).size).toBe(4), PATIENCE);
    }
    const before = groups.named.length;
    // Nodes of new machines come later: where they are idle for as long as the others, the two that may go could be chosen among them.
    const notYet = { method: 'CreateMachine', effect: 'fail', code: 'Unavailable', retryAfterMs: 500 } as const;
    cloud.simulation.faults.set([...faults, notYet]);
    await groups.scaleGroup('chosen', 2);

    await using _after = groups.autoscaler();
    const isAgain = (name: string): boolean => groups.named.slice(0, before).includes(name);
    await eventually(() => expect(groups.named.slice(before).some(isAgain)).toBe(true), PATIENCE);
    cloud.simulation.faults.set([]);
    await groups.untilSizes({ chosen: 0 });

    expect(goneFrom(cloud).filter((name) => !groups.named.includes(name))).toEqual([]);
  });

  test('takes another group for what could not be created at the minimum of the first', async () => {
    const faults = [
      { method: 'CreateMachine', effect: 'fail', code: 'ResourceExhausted', machines: 'a-none-.*' } as const,
    ];
    await using cloud = await SimulatedCloud.start({ site, nodeLeases: true, faults });
    const limits = { 'a-none': { min: 1, max: 5 }, 'b-other': { min: 0, max: 5 } };
    await using groups = await ScaledGroups.create({ site, cloud, groups: limits });
    await using _manager = await groups.manager();
    await groups.scaleGroup('a-none', 1);
    await groups.untilCreationFails('ResourceExhausted');
    await using _autoscaler = groups.autoscaler(UNTIL_SKIPPED);

    await groups.scalePods(3 * PODS_PER_MACHINE);
    await groups.untilRunning(3);

    expect(cloud.created.every(({ machineName }) => machineName.startsWith('b-other-'))).toBe(true);
    expect(cloud.created).toHaveLength(3);
    await eventually(async () => expect(await groups.sizeOf('a-none')).toBe(1), PATIENCE);
  });

  test('goes on scaling all groups although one at its minimum lacks a machine that cannot be created', async () => {
    await using cloud = await SimulatedCloud.start({ site, nodeLeases: true });
    const limits = { 'c-partly': { min: 2, max: 2 }, 'd-other': { min: 0, max: 5 } };
    await using groups = await ScaledGroups.create({ site, cloud, groups: limits });
    await using _manager = await groups.manager();
    await groups.scaleGroup('c-partly', 1);
    await groups.untilRunning(1);
    cloud.simulation.faults.set([
      { method: 'CreateMachine', effect: 'fail', code: 'ResourceExhausted', machines: 'c-partly-.*' },
    ]);
    await groups.scaleGroup('c-partly', 2);
    await groups.untilCreationFails('ResourceExhausted');
    await using _autoscaler = groups.autoscaler(UNTIL_SKIPPED);
    await groups.scalePods(2 * PODS_PER_MACHINE);
    await groups.untilRunning(2);

    groups.skippedMs = 2 * HOUR_MS;
    await groups.scalePods(3 * PODS_PER_MACHINE);
    await groups.untilRunning(3);
    expect(await groups.sizeOf('d-other')).toBe(2);
    await groups.scalePods(PODS_PER_MACHINE);
    // Where the pods that are left fill one of its machines, that stays, and the one of the other group is at its minimum.
    await eventually(async () => expect(await groups.sizeOf('d-other')).toBeLessThan(2), PATIENCE);

    expect(groups.said.filter((line) => line.startsWith('loop lost'))).toEqual([]);
    expect(groups.asked.filter(({ group }) => group === 'c-partly')).toEqual([]);
    expect(await groups.sizeOf('c-partly')).toBe(2);
  });

  test('does not take back what a rollout makes and cannot create, which would cost machines that work', async () => {
    await using cloud = await SimulatedCloud.start({ site, nodeLeases: true });
    const limits = { 'e-rolled': { min: 0, max: 3 }, 'f-other': { min: 0, max: 5 } };
    await using groups = await ScaledGroups.create({ site, cloud, groups: limits });
    await using _manager = await groups.manager();
    await groups.scaleGroup('e-rolled', 3);
    await groups.untilRunning(3);
    const full = {
      method: 'CreateMachine',
      effect: 'fail',
      code: 'ResourceExhausted',
      machines: 'e-rolled-.*',
    } as const;
    cloud.simulation.faults.set([full]);
    await groups.roll('e-rolled');
    await groups.untilCreationFails('ResourceExhausted');
    await using _autoscaler = groups.autoscaler({ scaleDownUnneededMs: HOUR_MS });

    // It deals with what has failed in all groups before it scales one of them.
    await groups.scalePods(4 * PODS_PER_MACHINE);
    await eventually(() => cloud.created.some(({ machineName }) => machineName.startsWith('f-other-')), PATIENCE);

    expect(groups.asked.filter(({ group }) => group === 'e-rolled')).toEqual([]);
    expect(await groups.sizeOf('e-rolled')).toBe(3);
    expect(cloud.deleted).toBe(0);
  });
});

/** A manager and an autoscaler that live until the autoscaler has sent its first call that changes something. */
async function dieAtOnce(groups: ScaledGroups): Promise<void> {
  await using manager = await groups.manager();
  await using _autoscaler = groups.autoscaler();
  await groups.untilAsked();
  await manager.abandon();
}
