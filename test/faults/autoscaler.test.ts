import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { PODS_PER_MACHINE, ScaledGroups } from '../cloud/node-groups.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';

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
  test('makes 20 machines for pods that wait, and only those go that it names, until none is left', async () => {
    await using cloud = await SimulatedCloud.start({ site, nodeLeases: true });
    await using groups = await ScaledGroups.create({ site, cloud, groups: { workers: { min: 0, max: 20 } } });
    await using _manager = await groups.manager();
    await using _autoscaler = groups.autoscaler();

    await groups.scalePods(20 * PODS_PER_MACHINE);
    await groups.untilSizes({ workers: 20 });
    await groups.scalePods(5 * PODS_PER_MACHINE);
    await groups.untilSizes({ workers: 5 });
    const shrunk = goneFrom(cloud);
    await groups.scalePods(0);
    await groups.untilSizes({ workers: 0 });

    expect(shrunk).toHaveLength(15);
    expect(goneFrom(cloud).filter((name) => !groups.named.has(name))).toEqual([]);
    expect(cloud.created).toHaveLength(20);
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
    await using groups = await ScaledGroups.create({ site, cloud, groups: { workers: { min: 1, max: 8 } } });
    for (const { pods, size } of [
      { pods: 8 * PODS_PER_MACHINE, size: 8 },
      { pods: 2 * PODS_PER_MACHINE, size: 2 },
      { pods: 6 * PODS_PER_MACHINE, size: 6 },
      { pods: 0, size: 1 },
    ]) {
      await groups.scalePods(pods);
      await dieAtOnce(groups);
      await using _manager = await groups.manager();
      await using _autoscaler = groups.autoscaler();
      await groups.untilSizes({ workers: size });
    }

    expect(goneFrom(cloud).filter((name) => !groups.named.has(name))).toEqual([]);
    expect([...cloud.doubled]).toEqual([]);
  });
});

/** A manager and an autoscaler that live until the autoscaler has sent its first call that changes something. */
async function dieAtOnce(groups: ScaledGroups): Promise<void> {
  await using manager = await groups.manager();
  await using _autoscaler = groups.autoscaler();
  await groups.untilAsked();
  await manager.abandon();
}
