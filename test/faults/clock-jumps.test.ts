import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { HOUR } from '../durations.ts';
import type { Interceptor } from '../../pkg/kube/gate/interceptor.ts';
import { JumpingClock } from '../cloud/jumping-clock.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { QUICK, SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';

const PATIENCE = { timeoutMs: 120_000 };
const MACHINES = 8;
const FLAGS = {
  'leader-elect': 'true',
  'leader-elect-lease-duration': '30s',
  'leader-elect-renew-deadline': '25s',
};

let site: Site;

beforeAll(async () => {
  site = await Site.drawn();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

/** A leader in the middle of its work, whose host's clock is then set by so much; notes what it got done of what it began from then on. */
async function whileItWorks(
  pool: Pool,
  cloud: SimulatedCloud,
  jumpMs: number,
): Promise<{ leader: InProcessManager; sentLate: readonly string[] }> {
  const clock = new JumpingClock();
  const sentLate: string[] = [];
  const intercept: Interceptor = async (mutation, send) => {
    const isLate = clock.offsetMs !== 0;
    const answer = await send(); // the gate refuses here
    // Events only report: they need no leadership.
    if (isLate && !mutation.text.startsWith('POST events')) sentLate.push(mutation.text);
    return answer;
  };
  // The clock of this thread alone is the one that jumps.
  const hooks = { intercept, interceptDriver: intercept, leasesInMainThread: true };
  const leader = await InProcessManager.start({ ...pool.access, flags: FLAGS, clock, hooks });
  await eventually(() => cloud.created.length > 0, { ...PATIENCE, intervalMs: 5, describe: 'the first VM' });
  clock.offsetMs = jumpMs;
  return { leader, sentLate };
}

function slow(): Promise<SimulatedCloud> {
  return SimulatedCloud.start({ site, latencyMs: { ...QUICK, create: 300, join: 300 } });
}

test('a leader whose wall clock jumps forward sends nothing from that moment and ends, and the next one goes on', async () => {
  await using cloud = await slow();
  await using pool = await Pool.create({ site, cloud, replicas: MACHINES });

  const { leader, sentLate } = await whileItWorks(pool, cloud, HOUR);
  expect(await leader.ended).toBe(1);
  await using next = await InProcessManager.start({ ...pool.access, flags: FLAGS });
  await pool.untilUp(MACHINES, PATIENCE);

  expect(sentLate).toEqual([]);
  expect(await pool.leaders()).toEqual([next.identity, next.identity]);
  expect(cloud.created).toHaveLength(MACHINES);
}, 300_000);

test('a leader whose wall clock jumps back goes on', async () => {
  await using cloud = await slow();
  await using pool = await Pool.create({ site, cloud, replicas: MACHINES });

  const { leader, sentLate } = await whileItWorks(pool, cloud, -HOUR);
  await pool.untilUp(MACHINES, PATIENCE);

  expect(await pool.leaders()).toEqual([leader.identity, leader.identity]);
  expect(sentLate.length).toBeGreaterThan(MACHINES);
  expect(cloud.created).toHaveLength(MACHINES);
  expect(await leader.terminate()).toBe(0);
}, 300_000);
