import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import PQueue from 'p-queue';

import { HOUR } from '../durations.ts';
import { DELETE_ORPHAN_VMS_UNTIL_ANNOTATION } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import { toTimestamp } from '../../pkg/base/clock/clock.ts';
import { DRIVER_CODES, type DriverCode } from '../../pkg/driver/error.ts';
import type { FaultRule, DriverMethod } from '../../packages/providers/sim/faults.ts';
import { JumpingClock } from '../cloud/jumping-clock.ts';
import { type FaultRow, isSound, type Outcome, Trial } from '../cloud/trial.ts';
import type { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { sampled } from '../expect/sampled.ts';
import { controlClusterRows } from './control-cluster-rows.ts';

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

const FAILURES = DRIVER_CODES.filter((code): code is DriverCode => !['OK', 'NotFound', 'Uninitialized'].includes(code));

let site: Site;

beforeAll(async () => {
  site = await Site.drawn();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

/** One failing call for each code, in turn. */
function everyCode(method: DriverMethod): FaultRule[] {
  return FAILURES.map((code) => ({ method, effect: 'fail', code, times: 1 }));
}

async function setReadiness({ cloud, pool }: Trial, share: number, readiness: 'ready' | 'unknown'): Promise<void> {
  const names = (await pool.nodes()).map(({ metadata }) => metadata.name).toSorted();
  const some = names.slice(0, Math.ceil(names.length * share));
  // A Node may go with its machine at any moment.
  await Promise.allSettled(some.map(async (name) => cloud.simulation.nodes?.setReadiness(name, readiness)));
}

/** Nodes are away for a while, once the machines are up. */
function away(share: number): NonNullable<FaultRow['disturb']> {
  return async (trial, over) => {
    await trial.pool.untilUp(MACHINES, { timeoutMs: 600_000 });
    await setReadiness(trial, share, 'unknown');
    await sleep(AWAY_MS, undefined, { signal: over }).catch(() => undefined);
    await setReadiness(trial, 1, 'ready');
  };
}

/** Their deadline is 30 s. */
const HANGING_READS: readonly FaultRule[] = [
  { method: 'GetMachineStatus', effect: 'hang', times: 2 },
  { method: 'ListMachines', effect: 'hang', times: 1 },
];

const clock = new JumpingClock();

/** Long enough for what is listed to be proved, and more. */
async function manyLists(cloud: SimulatedCloud, over: AbortSignal): Promise<void> {
  const before = cloud.calls['ListMachines'] ?? 0;
  while ((cloud.calls['ListMachines'] ?? 0) < before + 5 && !over.aborted) {
    await sleep(200, undefined, { signal: over }).catch(() => undefined);
  }
}

const ROWS: readonly FaultRow[] = [
  {
    what: 'creations fail, once with each code',
    kind: 'failure',
    faults: everyCode('CreateMachine'),
    machines: FAILURES.length,
  },
  {
    what: 'deletions fail, once with each code',
    kind: 'failure',
    faults: everyCode('DeleteMachine'),
    machines: FAILURES.length,
  },
  {
    what: 'looks fail, once with each code',
    kind: 'failure',
    faults: everyCode('GetMachineStatus'),
    machines: FAILURES.length,
  },
  {
    what: 'answers are late',
    kind: 'delay',
    faults: [{ method: '*', effect: 'late', delayMs: 700, probability: 0.5 }],
  },
  {
    what: 'what was done is reported as failed',
    kind: 'wrong answer to a change',
    faults: [
      { method: 'CreateMachine', effect: 'fail-after', probability: 0.4, times: 6 },
      { method: 'DeleteMachine', effect: 'fail-after', probability: 0.4, times: 6 },
    ],
  },
  {
    what: 'what was made is reported as failed, and a repeated creation makes a second VM',
    kind: 'wrong answer to a change',
    faults: [
      { method: 'CreateMachine', effect: 'fail-after', times: 3 },
      { method: 'CreateMachine', effect: 'duplicate' },
    ],
  },
  {
    what: 'a new VM is forgotten',
    kind: 'wrong answer to a change',
    faults: [{ method: 'CreateMachine', effect: 'forget', times: 1 }],
    extraVMs: 1,
  },
  {
    what: 'lists and looks are stale',
    kind: 'wrong answer to a look',
    faults: [
      { method: 'ListMachines', effect: 'stale', delayMs: 1_000 },
      { method: 'GetMachineStatus', effect: 'stale', delayMs: 200, probability: 0.5 },
    ],
  },
  {
    what: 'a VM gets a twin of its name and UID while it is made, so that drivers say OutOfRange',
    twins: true,
    extraVMs: 2,
    async disturb({ cloud }) {
      const has = new Set<string>();
      cloud.simulation.cloud.onEvent((vm, event) => {
        if (event !== 'created' || has.size === 2 || has.has(vm.machineName)) return;
        has.add(vm.machineName);
        cloud.simulation.cloud.create({ ...vm, joinsAtMs: undefined });
      });
      await Promise.resolve();
    },
  },
  {
    what: 'lists show every VM under another id',
    kind: 'wrong answer to a look',
    faults: [{ method: 'ListMachines', effect: 'other-id' }],
    async disturb({ cloud }, over) {
      await manyLists(cloud, over);
    },
  },
  {
    what: 'a driver was upgraded and names every VM by another id',
    async disturb({ cloud, pool }, over) {
      await pool.untilUp(MACHINES, { timeoutMs: 600_000 });
      cloud.setFaults([
        { method: 'ListMachines', effect: 'other-id' },
        { method: 'GetMachineStatus', effect: 'other-id' },
      ]);
      await manyLists(cloud, over);
    },
  },
  {
    what: "creations are answered with another machine's VM",
    kind: 'wrong answer to a change',
    async disturb({ cloud, pool }) {
      await pool.untilUp(MACHINES, { timeoutMs: 600_000 });
      cloud.setFaults([{ method: 'CreateMachine', effect: 'other', times: 6 }]);
    },
  },
  { what: 'looks and lists hang', kind: 'delay', faults: HANGING_READS },
  {
    what: 'creations and deletions hang forever',
    kind: 'delay',
    faults: [
      { method: 'CreateMachine', effect: 'hang', times: 2 },
      { method: 'DeleteMachine', effect: 'hang', times: 2 },
    ],
    // Instead of ten minutes.
    run: { hooks: { driverMutationTimeoutMs: 4_000 } },
  },
  {
    what: 'every machine gets a second VM behind our back',
    extraVMs: 2 * MACHINES,
    async disturb({ cloud, pool }) {
      await pool.untilUp(MACHINES, { timeoutMs: 600_000 });
      // More at once than are deleted without being asked.
      await pool.annotateClass({ [DELETE_ORPHAN_VMS_UNTIL_ANNOTATION]: toTimestamp(Date.now() + HOUR) });
      for (const vm of cloud.simulation.cloud.all()) {
        // Other names than the machines': two VMs of one name are what `doubled` looks for.
        cloud.simulation.cloud.create({
          ...vm,
          machineName: `${vm.machineName}-2`,
          machineUID: undefined,
          joinsAtMs: undefined,
        });
      }
    },
  },
  { what: 'all Nodes of the zone are away at once', kind: 'Nodes', disturb: away(1) },
  { what: 'half of the Nodes are away', kind: 'Nodes', disturb: away(0.5) },
  {
    what: 'the wall clock jumps forward and back',
    run: { clock },
    async disturb() {
      for (const offsetMs of [HOUR, -HOUR, 0]) {
        clock.offsetMs = offsetMs;
        await sleep(500);
      }
    },
  },
  ...controlClusterRows(MACHINES, AWAY_MS),
];

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
      rows: ROWS,
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
