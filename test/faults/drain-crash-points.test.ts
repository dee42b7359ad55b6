import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import PQueue from 'p-queue';

import { CrashPoint, hitAt, type Point, POINTS } from '../cloud/crash-point.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { Succession } from '../cloud/succession.ts';
import { Workload } from '../cloud/workload.ts';

/*
 * The manager dies at every one of its mutations of a drain and a deletion, or loses its answer: two pods are evicted, a third one
 * with its volume, the VM goes, the Node goes; or the same by force. Anyone who comes next ends it, in the same order.
 * MACHINIST_CRASH_POINTS=all walks every n; without it, a sample.
 */
const EVERY = process.env['MACHINIST_CRASH_POINTS'] === 'all';
/** Lives at a time: they mostly wait. */
const CONCURRENCY = 6;
const SAMPLE_STEP = 5;
/** The volume leaves its Node, and arrives elsewhere, so late. */
const LATE_MS = 100;

let site: Site;

beforeAll(async () => {
  site = await Site.open();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

/** The end of one machine with one fault in it. */
interface End {
  readonly n: number;
  readonly hit: string | undefined;
  readonly failure: string | undefined;
  /** Mutations of the first manager. */
  readonly mutations: number;
  /** Pods and volumes that were still at the Node when the VM was deleted. */
  readonly early: readonly string[];
  /** Pods that were deleted, not evicted. */
  readonly killed: readonly string[];
}

/** Lets a machine run undisturbed, then has it deleted while the n-th mutation from there on goes wrong. */
async function endWith(force: boolean, n: number, point: Point): Promise<End> {
  await using cloud = await SimulatedCloud.start({ site });
  await using pool = await Pool.create({ site, cloud, replicas: 0 });
  const workload = await Workload.open(site.api, pool.namespace);
  const crash = new CrashPoint(n, point);
  const after = new CrashPoint(0, point);
  const early: string[] = [];
  let nodeName = '';
  let isArmed = false;
  const hooksOf =
    (watched: CrashPoint): InstanceType<typeof CrashPoint>['intercept'] =>
    async (mutation, send) => {
      if (!isArmed) return await send();
      return await watched.intercept(mutation, async () => {
        if (mutation.text.startsWith('DRIVER DeleteMachine')) early.push(...(await leftAt(workload, nodeName)));
        return await send();
      });
    };
  const start = (watched: CrashPoint): Promise<InProcessManager> =>
    InProcessManager.start({
      ...pool.access,
      hooks: { intercept: hooksOf(watched), interceptDriver: hooksOf(watched) },
    });

  await using stack = new AsyncDisposableStack();
  const managers = stack.use(
    await Succession.start(
      crash,
      () => start(crash),
      () => start(after),
    ),
  );
  nodeName = await pool.addMachine();
  const volume = await workload.volume(nodeName);
  await workload.pod(nodeName);
  await workload.pod(nodeName);
  await workload.pod(nodeName, volume);
  const ended = new AbortController();
  const moving = force ? undefined : workload.moveVolume(volume, nodeName, LATE_MS, ended.signal);
  stack.defer(async () => {
    ended.abort();
    await moving;
  });
  if (force) await pool.label(nodeName, { 'force-deletion': 'true' });

  isArmed = true;
  await pool.deleteMachine(nodeName);
  const failure = await Promise.race([pool.untilEmpty(), managers.failed]).then(
    () => undefined,
    (err: unknown) => (err instanceof Error ? err.message : String(err)),
  );
  const texts = [...crash.texts, ...after.texts];
  const killed = texts.filter((text) => text.startsWith('DELETE pods'));
  early.push(...(await leftAt(workload, nodeName)));
  return { n, hit: crash.texts[n - 1], failure, mutations: crash.texts.length, early, killed };
}

async function leftAt(workload: Workload, nodeName: string): Promise<string[]> {
  const pods = await workload.pods();
  const attachments = await workload.attachments(nodeName);
  return [...pods, ...attachments].map(({ metadata }) => metadata.name);
}

describe('a manager that dies or loses an answer at its n-th mutation', () => {
  test.each(
    [false, true].flatMap((force) =>
      POINTS.map((point, i) => ({ how: force ? 'a deletion by force' : 'a deletion', force, point, first: 1 + i })),
    ),
  )(
    'leaves nothing of $how, and takes no VM from under pods or volumes: $point each mutation',
    async ({ force, point, first }) => {
      const { mutations, ...undisturbed } = await endWith(force, 0, point);
      const queue = new PQueue({ concurrency: CONCURRENCY });
      const ends: Promise<End>[] = [];
      for (let n = EVERY ? 1 : first; n <= mutations; n += EVERY ? 1 : SAMPLE_STEP) {
        ends.push(queue.add(() => hitAt(n, (at) => endWith(force, at, point))));
      }
      const hit = await Promise.all(ends);
      const all = [undisturbed, ...hit];

      expect(all.filter(({ failure, early }) => failure !== undefined || early.length > 0)).toEqual([]);
      expect(all.filter(({ killed }) => killed.length > 0 !== force)).toEqual([]);
      expect(hit.filter((end) => end.hit === undefined)).toEqual([]);
    },
    900_000,
  );
});
