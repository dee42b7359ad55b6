import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import PQueue from 'p-queue';

import { hitAt } from '../cloud/crash-point.ts';
import { crashTable } from '../cloud/crash-table.ts';
import { type Life, liveThrough, type Plan } from '../cloud/life.ts';
import { Site } from '../cloud/site.ts';
import { sampled } from '../expect/sampled.ts';

/*
 * The manager dies at one of its mutations, or loses its answer, and all comes to a good end. Each row of the table is
 * a whole life: a MachineDeployment whose user data has bootstrap tokens is created, rolled where the plan says so, and
 * deleted with its class and Secret.
 *
 * Each mutation is hit in a simulated world: test/crash-points. Programs that talk over connections are shown a sample with each kind of
 * mutation, on kube-apiserver where the commit says so; with MACHINIST_TEST_SAMPLE=all they are shown each mutation of both plans there (some
 * 500 lives). Which mutation is the n-th differs a little from life to life, since controllers work side by side.
 */
const CREATE_AND_DELETE: Plan = { replicas: 1, rolls: 0 };
const ROLL: Plan = { replicas: 2, rolls: 1 };
/** Lives of a sample at least. */
const LIVES = 12;
const ROLLS = 3;
/** Lives at a time: they mostly wait. */
const CONCURRENCY = 6;

let site: Site;

beforeAll(async () => {
  site = await Site.drawn();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

/** Lives with a fault, of which there is one for each mutation of a life without any. */
async function walk(name: string, plan: Plan, how: Parameters<typeof crashTable>[2]): Promise<readonly Life[]> {
  const { texts } = await liveThrough(site, plan, 0, 'before');
  const queue = new PQueue({ concurrency: CONCURRENCY });
  const rows = sampled(crashTable(name, texts, how));
  return await queue.addAll(
    rows.map(
      ({ n, point }) =>
        () =>
          hitAt(n, (at) => liveThrough(site, plan, at, point)),
    ),
  );
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
  test('leaves one VM for one machine, and nothing after its deletion, in whatever state', async () => {
    const lives = await walk('crash points', CREATE_AND_DELETE, { least: LIVES, kinds: true });

    expect(faultsOf(lives, CREATE_AND_DELETE)).toEqual([]);
    expect(lives.filter((life) => !isRepeatedOnce(life, CREATE_AND_DELETE))).toEqual([]);
    expect(lives.filter(({ hit }) => hit === undefined)).toEqual([]);
  }, 900_000);

  test('replaces each of two machines once while they roll', async () => {
    const lives = await walk('crash points of a roll', ROLL, { least: ROLLS });

    expect(faultsOf(lives, ROLL)).toEqual([]);
    expect(lives.filter((life) => !isRepeatedOnce(life, ROLL))).toEqual([]);
    expect(lives.filter(({ hit }) => hit === undefined)).toEqual([]);
  }, 3_600_000);
});
