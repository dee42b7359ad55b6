import { expect, jest, test } from '@jest/globals';

import { USER_ACT_NAMES } from '../world/acts.ts';
import { FAULT_KINDS, type FaultKind, type FaultPlan } from '../world/faults.ts';
import { run } from '../world/run.ts';
import { scriptOf } from '../world/script.ts';
import { CORPUS } from './seeds.ts';

// Seconds of the processor, which a busy host takes long to give: a life is bounded by its own time.
jest.setTimeout(900_000);

/** Between them they have each kind of world, of trouble, of what a driver does wrong and of what users do. */
const FIXED = [7, 10, 13, 44, 75];

test('the fixed seeds have each kind of trouble, and of what users do', () => {
  const plans = FIXED.flatMap((seed) => scriptOf(seed).phases.map(({ plan }) => plan));
  const kinds = FAULT_KINDS.filter((kind) => plans.some((plan) => isIn(kind, plan)));
  const acts = USER_ACT_NAMES.filter((name) => plans.some((plan) => plan.act > 0 && plan.acts.includes(name)));

  expect(kinds).toEqual(FAULT_KINDS);
  expect(acts).toEqual(USER_ACT_NAMES);
});

function isIn(kind: FaultKind, plan: FaultPlan): boolean {
  if (kind === 'driver') return plan.driver.length > 0;
  return { ...plan, ...plan.rates }[kind] > 0;
}

test.each(FIXED)('nothing is found in seed %s', async (seed) => {
  const { findings } = await run(seed);

  expect(findings).toEqual([]);
});

for (const { seed, showed, ...limits } of CORPUS) {
  test(`what was found once is not found again: ${showed}`, async () => {
    const { findings } = await run(seed, limits);

    expect(findings).toEqual([]);
  });
}
