import { describe, expect, jest, test } from '@jest/globals';

import { sampled } from '../expect/sampled.ts';
import { FATES, type Fate, liveThrough, MOVES, type SimulatedLife, type SimulatedPlan } from './simulated-life.ts';

/*
 * In a simulated world, the process dies at each of its mutations, loses its answer, or stands still for longer than its Leases last:
 * each is a life of its own. Lives with real servers are hit at a few of them: test/faults/crash-points.test.ts and paused-leader.test.ts.
 */

// Seconds of the processor, which a busy host takes long to give: a life is bounded by its own time.
jest.setTimeout(900_000);

const CREATE_AND_DELETE: SimulatedPlan = { replicas: 1, rolls: 0 };
const ROLL: SimulatedPlan = { replicas: 2, rolls: 1 };
const DRAIN: SimulatedPlan = { replicas: 2, rolls: 0, drains: true };
const IN_CELL: SimulatedPlan = { replicas: 1, rolls: 0, inCell: true };
const ROLL_IN_CELL: SimulatedPlan = { replicas: 2, rolls: 1, inCell: true };
/** Of some 480, of some 240, of some 190 and of some 600. */
const [ROLLS, DRAINS, MOVED, ROLLS_MOVED] = [20, 16, 10, 5];

interface Row {
  readonly n: number;
  readonly fate: Fate;
  readonly mutation: string;
}

/** All mutations of a life without a fault, each of which can go wrong in such a way; of those that drain, from the drain on. */
async function rowsOf(plan: SimulatedPlan, fate: Fate): Promise<readonly Row[]> {
  const { mutations, before, findings } = await liveThrough(plan, 0, fate);
  expect(findings).toEqual([]);
  const rows = mutations.map((mutation, i) => ({
    n: i + 1,
    fate,
    mutation: mutation.replace(/ \/.*\/namespaces\//, ' '),
  }));
  return rows.slice(before);
}

/** A sample of what can go wrong in such lives. */
async function sampleOf(name: string, plan: SimulatedPlan, least: number): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const fate of FATES) rows.push(...(await rowsOf(plan, fate)));
  return sampleFrom(name, rows, least);
}

/** The same of the moves of a cell, whose lives without one are alike. */
async function movesOf(name: string, plan: SimulatedPlan, least: number): Promise<readonly Row[]> {
  const rows = await rowsOf(plan, MOVES[0]);
  const moves = MOVES.flatMap((fate) => rows.map((row) => ({ ...row, fate })));
  return sampleFrom(name, moves, least);
}

function sampleFrom(name: string, rows: readonly Row[], least: number): readonly Row[] {
  const nameOf = ({ n, fate, mutation }: Row): string => `${fate} ${n}: ${mutation}`;
  return sampled({ name, rows, nameOf, kindsOf: ({ fate }) => [fate], least });
}

async function walk(plan: SimulatedPlan, rows: readonly Row[], vms: number): Promise<readonly SimulatedLife[]> {
  const lives: SimulatedLife[] = [];
  for (const { n, fate } of rows) lives.push(await liveThrough(plan, n, fate));

  expect(lives.filter(({ findings, vmsCreated }) => findings.length > 0 || vmsCreated !== vms)).toEqual([]);
  // How many there are differs a little from life to life.
  expect(lives.filter(({ isHit, n, mutations }) => !isHit && n <= mutations.length)).toEqual([]);
  return lives;
}

describe('a process that dies, stands still or loses an answer at one of its mutations', () => {
  test.each(FATES)(
    'makes one VM for a machine, and leaves nothing after its deletion, at each mutation: %s',
    async (fate) => {
      const rows = await rowsOf(CREATE_AND_DELETE, fate);

      expect(rows.length).toBeGreaterThan(30);
      await walk(CREATE_AND_DELETE, rows, 1);
    },
  );

  test('replaces each of two machines once while they roll', async () => {
    await walk(ROLL, await sampleOf('simulated crash points of a roll', ROLL, ROLLS), 4);
  });

  test('takes no VM from under pods or volumes, and replaces a machine once that a user deletes', async () => {
    await walk(DRAIN, await sampleOf('simulated crash points of a drain', DRAIN, DRAINS), 3);
  });
});

describe('another replica that manages a cell from one of its mutations on', () => {
  test('makes one VM for a machine, and leaves nothing after its deletion', async () => {
    const rows = await movesOf('simulated moves of a cell', IN_CELL, MOVED);
    const lives = await walk(IN_CELL, rows, 1);

    // Near its end, a life may be over before the other one has it; one that joins is given a cell only after a while.
    const share = ({ fate }: SimulatedLife): number => (fate === 'joined' ? 1 / 3 : 9 / 10);
    expect(lives.filter((life) => life.holders < 2 && life.n < life.mutations.length * share(life))).toEqual([]);
  });

  test('replaces each of two machines once while they roll', async () => {
    await walk(ROLL_IN_CELL, await movesOf('simulated moves of a cell that rolls', ROLL_IN_CELL, ROLLS_MOVED), 4);
  });
});
