import { performance } from 'node:perf_hooks';

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import PQueue from 'p-queue';

import { type FaultRow, isSound, type Outcome, Trial } from '../cloud/trial.ts';
import { Site } from '../cloud/site.ts';
import { sampled } from '../expect/sampled.ts';
import { faultRows } from './fault-rows.ts';

/*
 * Work goes on while something is wrong with the provider, the Nodes or the clock. Each row
 * is a whole life: created, rolled, shrunk, deleted. A sample has one row of each kind: those of a kind resemble one another, and simulated
 * worlds have what is wrong in them, see docs/development/faults.md; a row without a kind is in each. MACHINIST_FAULTS=long takes all rows and 100 machines a row, and
 * lets Nodes be away for a minute; MACHINIST_FAULT_SEED says which calls go wrong where only some do.
 */
const IS_LONG = process.env['MACHINIST_FAULTS'] === 'long';
const SEED = process.env['MACHINIST_FAULT_SEED'] ?? 'machinist';
const MACHINES = IS_LONG ? 100 : 4;
const AWAY_MS = IS_LONG ? 60_000 : 3_000;
/** Rows at a time: they mostly wait, but share one thread with the simulated API server. */
const CONCURRENCY = IS_LONG ? 1 : 5;
const TEST_MS = 7_200_000;

let site: Site;

beforeAll(async () => {
  site = await Site.drawn();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

async function run(row: FaultRow): Promise<Outcome> {
  const machines = Math.min(Math.max(MACHINES, row.machines ?? 0), row.mostMachines ?? Infinity);
  const beganMs = performance.now();
  const outcome = await Trial.run(site, machines, row, SEED);
  const seconds = ((performance.now() - beganMs) / 1_000).toFixed(0);
  const { what, created, needed, deleted, replaced, failure = 'came to its end' } = outcome;
  const figures = `${created} of ${needed} VMs created, ${deleted} deleted, ${replaced.length} machines replaced`;
  process.stdout.write(`${what}: ${figures}, ${seconds} s: ${failure}\n`);
  return outcome;
}

async function runAll(rows: readonly FaultRow[]): Promise<readonly Outcome[]> {
  const queue = new PQueue({ concurrency: CONCURRENCY });
  return await Promise.all(rows.map((row) => queue.add(() => run(row))));
}

test(
  `every machine has one VM, and no VM is wasted, although something is wrong (${MACHINES} machines a row, seed ${SEED})`,
  async () => {
    const rows = sampled({
      name: 'fault table',
      rows: faultRows(MACHINES, AWAY_MS),
      takesMinutes: ({ takesMinutes = false }) => takesMinutes,
      nameOf: ({ what }) => what,
      kindsOf: ({ what, kind = what }) => [kind],
    });
    const outcomes = await runAll(rows);

    expect(outcomes.filter((outcome) => !isSound(outcome))).toEqual([]);
    expect(outcomes).toHaveLength(rows.length);
  },
  TEST_MS,
);
