import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';

const WAIT = { timeoutMs: 60_000, intervalMs: 200 };
/** Longer than all machines of the zone take to be found unhealthy, also on a slow machine: the first alone would be replaced. */
const FLAGS = { 'machine-health-timeout': '8s', 'machine-safety-grace': '0s' };

let site: Site;

beforeAll(async () => {
  site = await Site.open();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

function phasesOf(machines: readonly Machine[]): string[] {
  return machines.map(({ status }) => status?.currentStatus?.phase ?? '').toSorted();
}

test('machines of a zone that fell ill at once are not replaced before it is better, and everybody can see why', async () => {
  await using cloud = await SimulatedCloud.start({ site });
  await using pool = await Pool.create({ site, cloud, replicas: 4 });
  await using manager = await InProcessManager.start({ ...pool.access, flags: FLAGS });
  const [first = '', ...others] = await pool.untilUp(4);
  const readiness = async (name: string, to: 'unknown' | 'ready'): Promise<void> =>
    await cloud.simulation.nodes?.setReadiness(name, to);

  // At 3 of 4 the zone is ill. They fall ill within seconds; the first alone would be replaced.
  await Promise.all(others.map((name) => readiness(name, 'unknown')));
  const held = await eventually(
    async () => {
      const { status } = await pool.deployment();
      const condition = status?.conditions?.find(({ type }) => type === 'ReplacementHeld');
      if (condition?.reason !== 'ZoneUnhealthy') throw new Error(JSON.stringify(status));
      return condition;
    },
    { ...WAIT, describe: 'the MachineDeployment to say that replacement is held' },
  );
  expect(held).toMatchObject({ status: 'True', reason: 'ZoneUnhealthy' });
  await eventually(async () => (await manager.metric('machinist_replacements_held', 'zone')) >= 2, {
    ...WAIT,
    describe: 'machines held, as a metric',
  });
  expect(await manager.metric('machinist_zone_stopped')).toBe(1);
  const ill = await pool.machines();
  expect(phasesOf(ill)).toEqual(['Running', 'Unknown', 'Unknown', 'Unknown']);
  expect(ill.map(({ metadata: { name } }) => name).toSorted()).toEqual([first, ...others].toSorted());
  expect(cloud.created).toHaveLength(4);

  // Two recover: the zone is well, the last one is replaced.
  const [lost = '', ...recovered] = others;
  await Promise.all(recovered.map((name) => readiness(name, 'ready')));
  const names = await pool.untilUp(4);

  expect(names).not.toContain(lost);
  expect(names).toEqual(expect.arrayContaining([first, ...recovered]));
  expect(cloud.created).toHaveLength(5);
  await eventually(
    async () => (await pool.deployment()).status?.conditions?.every(({ type }) => type !== 'ReplacementHeld') === true,
    { ...WAIT, describe: 'the condition to go' },
  );
});
