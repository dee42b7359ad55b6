import { describe, expect, jest, test } from '@jest/globals';

import { type Fate, FATES, MOVES } from './faulty-world.ts';
import { hitEach, type Live, type Row, rowsOf, sampleFrom } from './rows.ts';
import { liveThrough, type SimulatedLife, type SimulatedPlan } from './simulated-life.ts';

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
const [ROLLS, DRAINS, MOVED, ROLLS_MOVED] = [12, 10, 6, 4];

const lifeOf =
  (plan: SimulatedPlan): Live<SimulatedLife> =>
  (n, fate) =>
    liveThrough(plan, n, fate);

/** Of those that drain, from the drain on. */
async function fromDrain(fate: Fate): Promise<readonly Row[]> {
  let before = 0;
  const rows = await rowsOf(async (n) => {
    const life = await liveThrough(DRAIN, n, fate);
    before = life.before;
    return life;
  }, fate);
  return rows.slice(before);
}

/** A sample of what can go wrong in such lives. */
async function sampleOf(
  name: string,
  rowsAt: (fate: Fate) => Promise<readonly Row[]>,
  least: number,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const fate of FATES) rows.push(...(await rowsAt(fate)));
  return sampleFrom(name, rows, least);
}

/** The same of the moves of a cell, whose lives without one are alike. */
async function movesOf(name: string, plan: SimulatedPlan, least: number): Promise<readonly Row[]> {
  const rows = await rowsOf(lifeOf(plan), MOVES[0]);
  const moves = MOVES.flatMap((fate) => rows.map((row) => ({ ...row, fate })));
  return sampleFrom(name, moves, least);
}

describe('a process that dies, stands still or loses an answer at one of its mutations', () => {
  test.each(FATES)(
    'makes one VM for a machine, and leaves nothing after its deletion, at each mutation: %s',
    async (fate) => {
      const live = lifeOf(CREATE_AND_DELETE);
      const rows = await rowsOf(live, fate);

      expect(rows.length).toBeGreaterThan(30);
      await hitEach(live, rows, { least: 1 });
    },
  );

  test('replaces each of two machines once while they roll', async () => {
    const live = lifeOf(ROLL);
    const rows = await sampleOf('simulated crash points of a roll', (fate) => rowsOf(live, fate), ROLLS);

    await hitEach(live, rows, { least: 4 });
  });

  test('takes no VM from under pods or volumes, and replaces a machine once that a user deletes', async () => {
    const rows = await sampleOf('simulated crash points of a drain', fromDrain, DRAINS);

    await hitEach(lifeOf(DRAIN), rows, { least: 3 });
  });
});

describe('another replica that manages a cell from one of its mutations on', () => {
  test('makes one VM for a machine, and leaves nothing after its deletion', async () => {
    const rows = await movesOf('simulated moves of a cell', IN_CELL, MOVED);
    const lives = await hitEach(lifeOf(IN_CELL), rows, { least: 1 });

    // Near its end, a life may be over before the other one has it; one that joins is given a cell only after a while.
    const share = ({ fate }: SimulatedLife): number => (fate === 'joined' ? 1 / 3 : 9 / 10);
    expect(lives.filter((life) => life.holders < 2 && life.n < life.mutations.length * share(life))).toEqual([]);
  });

  test('replaces each of two machines once while they roll', async () => {
    const rows = await movesOf('simulated moves of a cell that rolls', ROLL_IN_CELL, ROLLS_MOVED);

    await hitEach(lifeOf(ROLL_IN_CELL), rows, { least: 4 });
  });
});
