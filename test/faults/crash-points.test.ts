import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import PQueue from 'p-queue';

import { hitAt, POINTS, type Point } from '../cloud/crash-point.ts';
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
/** A death before a mutation leaves what a death after the one before it leaves: every other one of both is every state. */
const WALKS = [
  { point: 'before', step: 2 },
  { point: 'after', step: 2 },
  { point: 'lost', step: 1 },
] as const;

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
    lives.push(queue.add(() => hitAt(n, (at) => liveThrough(site, plan, at, point))));
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
  test.each(WALKS)(
    'leaves one VM for one machine, and nothing after its deletion, in whatever state: $point a mutation',
    async ({ point, step }) => {
      const lives = await walk(CREATE_AND_DELETE, point, 1, EVERY ? 1 : step);

      expect(faultsOf(lives, CREATE_AND_DELETE)).toEqual([]);
      expect(lives.filter((life) => !isRepeatedOnce(life, CREATE_AND_DELETE))).toEqual([]);
      expect(lives.filter(({ hit }) => hit === undefined)).toEqual([]);
    },
    900_000,
  );

  test.each(POINTS.map((point, first) => ({ point, first: 1 + 3 * first })))(
    'replaces each of two machines once while they roll: $point',
    async ({ point, first }) => {
      const lives = await (EVERY ? walk(ROLL, point, 1, 1) : walk(ROLL, point, first, SAMPLE_STEP));

      expect(faultsOf(lives, ROLL)).toEqual([]);
      expect(lives.filter((life) => !isRepeatedOnce(life, ROLL))).toEqual([]);
      expect(lives.filter(({ hit }) => hit === undefined)).toEqual([]);
    },
    3_600_000,
  );
});
