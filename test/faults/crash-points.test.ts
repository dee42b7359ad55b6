import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import PQueue from 'p-queue';

import { POINTS, type Point } from '../cloud/crash-point.ts';
import { type Life, liveThrough, type Plan } from '../cloud/life.ts';
import { Site } from '../cloud/site.ts';

/*
 * The manager dies at every one of its mutations, or loses its answer, and all comes to a good end. Each row of the table is
 * a whole life: a MachineDeployment whose user data has bootstrap tokens is created, rolled where the plan says so, and
 * deleted with its class and Secret.
 *
 * Which mutation is the n-th differs a little from life to life, since controllers work side by side. MACHINIST_CRASH_POINTS=all
 * walks every n through all plans (some 500 lives); without it, a life that rolls is hit at a sample of n.
 */
const EVERY = process.env['MACHINIST_CRASH_POINTS'] === 'all';

const CREATE_AND_DELETE: Plan = { replicas: 1, rolls: 0 };
const ROLL: Plan = { replicas: 2, rolls: 1 };

/** Lives at a time: they mostly wait. */
const CONCURRENCY = 6;
const SAMPLE_STEP = 9;

let site: Site;

beforeAll(async () => {
  site = await Site.open();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

/** Mutations of a life without fault, which is the same for all points. */
const undisturbed = new Map<Plan, number>();

async function mutationsOf(plan: Plan): Promise<number> {
  const known = undisturbed.get(plan);
  if (known !== undefined) return known;
  const { mutations } = await liveThrough(site, plan, 0, 'before');
  undisturbed.set(plan, mutations);
  return mutations;
}

/** All n from `first` on, by `step`, up to the number of mutations of a life without fault. */
async function walk(plan: Plan, point: Point, first: number, step: number): Promise<Life[]> {
  const mutations = await mutationsOf(plan);
  const queue = new PQueue({ concurrency: CONCURRENCY });
  const lives: Promise<Life>[] = [];
  for (let n = first; n <= mutations; n += step) {
    lives.push(queue.add(() => liveThrough(site, plan, n, point)));
  }
  return await Promise.all(lives);
}

/** What should never have happened, life by life. */
function faultsOf(lives: readonly Life[], { replicas, rolls }: Plan): unknown[] {
  const wanted = replicas * (1 + rolls);
  return lives.filter(
    ({ failure, vmsCreated, doubled }) => failure !== undefined || vmsCreated !== wanted || doubled.length > 0,
  );
}

/** At most one call was repeated, because nobody knew whether it had been made. */
function isRepeatedOnce({ creations, deletions }: Life, { replicas, rolls }: Plan): boolean {
  const wanted = replicas * (1 + rolls);
  return creations <= wanted + 1 && deletions <= wanted + replicas;
}

describe('a manager that dies or loses an answer at its n-th mutation', () => {
  test.each(POINTS)(
    'leaves one VM for one machine, and nothing after its deletion: %s each mutation',
    async (point) => {
      const lives = await walk(CREATE_AND_DELETE, point, 1, 1);

      expect(faultsOf(lives, CREATE_AND_DELETE)).toEqual([]);
      expect(lives.filter((life) => !isRepeatedOnce(life, CREATE_AND_DELETE))).toEqual([]);
      expect(lives.filter(({ hit }) => hit !== undefined).length).toBeGreaterThan(0.8 * lives.length);
    },
    900_000,
  );

  test.each(POINTS.map((point, first) => ({ point, first: 1 + 3 * first })))(
    'replaces each of two machines once while they roll: $point',
    async ({ point, first }) => {
      const lives = await (EVERY ? walk(ROLL, point, 1, 1) : walk(ROLL, point, first, SAMPLE_STEP));

      expect(faultsOf(lives, ROLL)).toEqual([]);
      expect(lives.filter((life) => !isRepeatedOnce(life, ROLL))).toEqual([]);
      expect(lives.filter(({ hit }) => hit !== undefined).length).toBeGreaterThan(0.8 * lives.length);
    },
    3_600_000,
  );
});
