import { expect, jest, test } from '@jest/globals';

import { DRIVER_CODES } from '../../../pkg/driver/error.ts';
import { sampled, sampledSeeds } from '../../expect/sampled.ts';
import { FAULT_KINDS, type FaultKind, type FaultPlan } from '../world/faults.ts';
import { run } from '../world/run.ts';
import { scriptOf } from '../world/script.ts';
import type { WorldKind } from '../worlds/kind.ts';
import { WORLDS, type WorldName } from '../worlds/worlds.ts';
import { CORPUS } from './seeds.ts';

// Seconds of the processor, which a busy host takes long to give: a life is bounded by its own time.
jest.setTimeout(900_000);

/** Between them those of a world have each thing that its users do, and those of machines each kind of trouble and of what a driver does wrong. */
const FIXED = {
  machines: [7, 10, 13, 44, 75],
  autoscaler: [12, 20],
  cells: [14, 44],
  'cluster-api': [3, 4],
  ironcore: [9, 12],
  mirantis: [6, 11],
} as const satisfies Readonly<Record<WorldName, readonly number[]>>;
const NAMES = Object.keys(FIXED) as WorldName[];

/** All of them with each change would take longer than as many fresh seeds, which show more. */
const CORPUS_SAMPLE = sampled({
  name: 'seeds that once showed something',
  rows: CORPUS,
  nameOf: ({ seed, world = 'machines' }) => `${seed} of ${world}`,
  kindsOf: ({ world = 'machines' }) => [world],
  least: 5,
});

function plansOf(world: WorldName): readonly FaultPlan[] {
  return FIXED[world].flatMap((seed) => scriptOf(seed, { world }).phases.map(({ plan }) => plan));
}

test('the fixed seeds have each kind of trouble', () => {
  const plans = plansOf('machines');
  const kinds = FAULT_KINDS.filter((kind) => plans.some((plan) => isIn(kind, plan)));

  expect(kinds).toEqual(FAULT_KINDS);
});

test.each(NAMES)('the fixed seeds of world %s have all that its users do', (world) => {
  const { acts, others = [] }: WorldKind = WORLDS[world];
  const done = plansOf(world)
    .filter(({ act }) => act > 0)
    .flatMap((plan) => plan.acts);

  const all = [...acts, ...others];

  expect(all.filter((name) => done.includes(name))).toEqual(all);
});

test('fresh seeds have each code of the driver contract', () => {
  const seeds = Array.from({ length: 200 }, (_, i) => i + 1);
  const drawn = new Set(
    seeds.flatMap((seed) => scriptOf(seed).phases.flatMap(({ plan }) => plan.driver)).map(({ code }) => code),
  );

  expect(DRIVER_CODES.filter((code) => !drawn.has(code))).toEqual(['OK']);
});

function isIn(kind: FaultKind, plan: FaultPlan): boolean {
  if (kind === 'driver') return plan.driver.length > 0;
  return { ...plan, ...plan.rates }[kind] > 0;
}

for (const world of NAMES) {
  test.each(sampledSeeds(`the fixed seeds of world ${world}`, FIXED[world]))(
    `nothing is found in seed %s of world ${world}`,
    async (seed) => {
      const { findings } = await run(seed, { world });

      expect(findings).toEqual([]);
    },
  );
}

for (const { seed, showed, ...limits } of CORPUS_SAMPLE) {
  test(`what was found once is not found again: ${showed}`, async () => {
    const { findings } = await run(seed, limits);

    expect(findings).toEqual([]);
  });
}
