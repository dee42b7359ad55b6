import { performance } from 'node:perf_hooks';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { FaultRule } from '../../packages/providers/sim/faults.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { QUICK, SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';

/*
 * A provider that does not answer, or answers that it has nothing to give: how long it takes until all machines are there, and until
 * all are gone, with the deadlines and waits of production. MACHINIST_FAULTS=long takes 100 machines a row.
 */
const IS_LONG = process.env['MACHINIST_FAULTS'] === 'long';
/**
 * Of the chances of faults: with this one machine finds no capacity five times. Should it be the last one, it waits for 5, 10, 20, 40 and
 * 80 s, as nobody else's success opens its class again.
 */
const SEED = process.env['MACHINIST_FAULT_SEED'] ?? 'machinist-125';
const TEST_MS = 1_200_000;

/** What is wrong, and how long that may delay the work. */
interface SlowRow {
  readonly what: string;
  readonly faults: readonly FaultRule[];
  /** 3 by default, and 100 in the long form. */
  readonly machines?: number;
  /** Until all machines are there; 0: nothing is waited for, they are deleted while they are created. */
  readonly upMs?: number;
  readonly goneMs?: number;
}

const ROWS: readonly SlowRow[] = [
  {
    what: 'creations are not answered',
    faults: [{ method: 'CreateMachine', effect: 'hang', times: IS_LONG ? 20 : 2 }],
    upMs: 180_000,
  },
  {
    what: 'deletions are not answered',
    faults: [{ method: 'DeleteMachine', effect: 'hang', times: IS_LONG ? 20 : 2 }],
    goneMs: 120_000,
  },
  {
    what: 'two of ten deletions are not answered, while the others are at once',
    faults: [{ method: 'DeleteMachine', effect: 'hang', times: 2 }],
    machines: 10,
    goneMs: 55_000,
  },
  {
    what: 'no creation is ever answered, and the machines are deleted',
    faults: [{ method: 'CreateMachine', effect: 'hang' }],
    upMs: 0,
    // The MachineClass is kept for two minutes, in which their VMs could still appear.
    goneMs: 240_000,
  },
  {
    what: 'half of the creations find no capacity',
    faults: [{ method: 'CreateMachine', effect: 'fail', code: 'ResourceExhausted', probability: 0.5 }],
    machines: 20,
    upMs: 240_000,
  },
  {
    what: '30 % of the creations find no capacity',
    faults: [{ method: 'CreateMachine', effect: 'fail', code: 'ResourceExhausted', probability: 0.3 }],
    machines: IS_LONG ? 60 : 10,
    upMs: 240_000,
  },
  {
    what: '30 % of the deletions fail',
    faults: [{ method: 'DeleteMachine', effect: 'fail', probability: 0.3 }],
    machines: IS_LONG ? 60 : 10,
  },
];

let site: Site;

beforeAll(async () => {
  site = await Site.drawn();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

/** What one row came to; `failure` is undefined when it ended in time. */
interface Outcome {
  readonly what: string;
  readonly failure: string | undefined;
  readonly created: number;
  readonly deleted: number;
  readonly needed: number;
}

async function run(row: SlowRow): Promise<Outcome> {
  const { what, faults, machines = IS_LONG ? 100 : 3, upMs = 240_000, goneMs = 240_000 } = row;
  await using cloud = await SimulatedCloud.start({
    site,
    seed: SEED,
    latencyMs: { ...QUICK, create: 200, delete: 200 },
    faults,
  });
  await using pool = await Pool.create({ site, cloud, replicas: machines });
  await using _manager = await InProcessManager.start({ ...pool.access, flags: { 'machine-safety-grace': '0s' } });
  const seconds: number[] = [];
  const timed = async (wait: () => Promise<unknown>): Promise<void> => {
    const startedMs = performance.now();
    await wait();
    seconds.push(Math.round((performance.now() - startedMs) / 1_000));
  };
  let failure: string | undefined;
  try {
    if (upMs > 0) await timed(() => pool.untilUp(machines, { timeoutMs: upMs }));
    else await timed(() => pool.untilAsked(machines));
    await pool.delete();
    await timed(() => pool.untilGone({ timeoutMs: goneMs }));
  } catch (err) {
    failure = err instanceof Error ? err.message : String(err);
  }
  const [created, needed] = [cloud.created.length, upMs > 0 ? machines : 0];
  const figures = `${created} of ${needed} VMs created, ${cloud.deleted} deleted`;
  process.stdout.write(
    `${what}: ${figures}; up after ${seconds[0] ?? '?'} s, gone after ${seconds[1] ?? '?'} s` +
      `${failure === undefined ? '' : `: ${failure}`}\n`,
  );
  return { what, failure, created, deleted: cloud.deleted, needed };
}

test(
  `a provider that does not answer, or has nothing to give, delays machines by about as long as it does so (seed ${SEED})`,
  async () => {
    const outcomes: Outcome[] = [];
    if (IS_LONG) for (const row of ROWS) outcomes.push(await run(row));
    else outcomes.push(...(await Promise.all(ROWS.map(run))));

    const wrong = outcomes.filter(
      ({ failure, created, deleted, needed }) => failure !== undefined || created > needed || deleted !== created,
    );
    expect(wrong).toEqual([]);
  },
  TEST_MS,
);
