import { setTimeout as sleep } from 'node:timers/promises';
import { performance } from 'node:perf_hooks';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { identitiesOf } from '../cloud/trial.ts';
import { eventually } from '../expect/eventually.ts';

const WAIT = { timeoutMs: 120_000, intervalMs: 200 };
/** Longer than all machines of the zone take to be found unhealthy, also on a slow machine: the first alone would be replaced. */
const FLAGS = { 'machine-health-timeout': '8s', 'machine-safety-grace': '0s' };

/* MACHINIST_FAULTS=long: 100 machines, whose Nodes are away for three minutes. */
const IS_LONG = process.env['MACHINIST_FAULTS'] === 'long';
const [MACHINES, TIMEOUT_MS, AWAY_MS] = IS_LONG ? [100, 30_000, 180_000] : [10, 10_000, 29_000];

let site: Site;

beforeAll(async () => {
  site = await Site.drawn();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

function phasesOf(machines: readonly Machine[]): string[] {
  return machines.map(({ status }) => status?.currentStatus?.phase ?? '').toSorted();
}

// promise: cluster-api/machinedeployments/many-fell-ill-once
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

/** Nodes of a zone that are away together, for longer than the health timeout. */
interface Absence {
  readonly what: string;
  readonly share: number;
  /** How many machines may be replaced so long after the Nodes went away. */
  readonly most: (elapsedMs: number) => number;
}

const ABSENCES: readonly Absence[] = [
  { what: 'half of the Nodes of a zone are away', share: 0.5, most: () => 0 },
  {
    what: 'less than half of them are away: one machine in a health timeout',
    share: 0.4,
    most: (elapsedMs) => Math.floor(elapsedMs / TIMEOUT_MS),
  },
];

/** What was wrong with a life, and its figures. */
async function live({ what, share, most }: Absence): Promise<{ what: string; wrong: readonly string[] }> {
  await using cloud = await SimulatedCloud.start({ site });
  await using pool = await Pool.create({ site, cloud, replicas: MACHINES });
  const flags = { ...FLAGS, 'machine-health-timeout': `${TIMEOUT_MS}ms` };
  await using _manager = await InProcessManager.start({ ...pool.access, flags });
  const names = await pool.untilUp(MACHINES, { timeoutMs: 240_000 });
  const before = identitiesOf(await pool.machines());
  const away = names.slice(0, MACHINES * share);

  const setReadiness = async (name: string, to: 'unknown' | 'ready'): Promise<void> =>
    await cloud.simulation.nodes?.setReadiness(name, to);

  const startedMs = performance.now();
  await Promise.all(away.map((name) => setReadiness(name, 'unknown')));
  await sleep(AWAY_MS);
  const replaced = cloud.created.length - MACHINES;
  const allowed = most(performance.now() - startedMs);
  // Those that were replaced meanwhile are gone.
  await Promise.allSettled(away.map((name) => setReadiness(name, 'ready')));
  await pool.untilUp(MACHINES, { timeoutMs: 240_000 });

  const after = identitiesOf(await pool.machines());
  const lost = [...before].filter(([name, identity]) => after.get(name) !== identity).length;
  const { length: created } = cloud.created;
  process.stdout.write(
    `${what}: ${away.length} of ${MACHINES} for ${AWAY_MS / 1_000} s, ${replaced} replaced of at most ${allowed}; ` +
      `in the end ${created} VMs created, ${cloud.deleted} deleted\n`,
  );
  const wrong = [
    ...(replaced > allowed ? [`${replaced} machines were replaced instead of ${allowed}`] : []),
    ...(lost > created - MACHINES ? [`${lost} machines are gone, ${created - MACHINES} new`] : []),
    ...(cloud.deleted > created - MACHINES ? [`${cloud.deleted} VMs were deleted`] : []),
    ...[...cloud.doubled].map((name) => `${name} had two VMs`),
  ];
  return { what, wrong };
}

test(`machines whose Nodes were away together are not replaced one after the other (${MACHINES} machines)`, async () => {
  const lives = await Promise.all(ABSENCES.map(live));

  expect(lives.filter(({ wrong }) => wrong.length > 0)).toEqual([]);
}, 900_000);
