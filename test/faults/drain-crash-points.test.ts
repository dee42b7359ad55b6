import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import PQueue from 'p-queue';

import {
  DELETION_POLICY_ANNOTATION,
  FORCED_REMOVAL_PREFIX,
  MAINTENANCE_ANNOTATION,
  PREPARE_DELETION_ANNOTATION,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import { MAINTENANCE } from '../../pkg/controllers/machine-facts/maintenance.ts';
import { hasPreparationBegun, preparationShownBy } from '../../pkg/controllers/machine-facts/prepared-deletion.ts';
import { CrashPoint, hitAt, type Point, POINTS } from '../cloud/crash-point.ts';
import { crashTable } from '../cloud/crash-table.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { Succession } from '../cloud/succession.ts';
import { Workload } from '../cloud/workload.ts';
import { eventually } from '../expect/eventually.ts';
import { sampled } from '../expect/sampled.ts';

/*
 * The manager dies at one of its mutations of a drain and a deletion, or loses its answer: two pods are evicted, a third one
 * with its volume, the VM goes, the Node goes; or the same by force. Anyone who comes next ends it, in the same order. The same through
 * a maintenance: two pods are evicted, and then the Node is given back. And through a deletion that is prepared, and one that is aborted; and
 * through a removal by force, whose VM is found and deleted when the provider works again.
 * All of them are hit at many mutations in simulated worlds: test/crash-points. Programs that talk over connections are shown a sample, on
 * kube-apiserver where the commit says so; MACHINIST_TEST_SAMPLE=all walks every n there.
 */
/** Lives at a time: they mostly wait. */
const CONCURRENCY = 6;
/** Mutations at which something goes wrong, of each life, in a sample: one of each point. */
const LIVES = POINTS.length;
/** Of a manager that lets machines go by force soon, and finds their VMs soon. */
const FORCED = {
  'forced-deletion-timeout': '1s',
  'machine-safety-orphan-vms-period': '1s',
  'machine-safety-orphan-vms-grace': '1s',
};
/** The volume leaves its Node, and arrives elsewhere, so late. */
const LATE_MS = 100;

let site: Site;

beforeAll(async () => {
  site = await Site.drawn();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

/** The end of one machine with one fault in it. */
interface End {
  readonly n: number;
  readonly hit: string | undefined;
  readonly failure: string | undefined;
  /** Mutations of the first manager, and what they were. */
  readonly mutations: number;
  readonly ofFirst: readonly string[];
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
        if (mutation.text.startsWith('DRIVER delete_machine')) early.push(...(await leftAt(workload, nodeName)));
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
  await workload.untilReady();
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
  return { n, hit: crash.texts[n - 1], failure, mutations: crash.texts.length, ofFirst: crash.texts, early, killed };
}

/** A maintenance with one fault in it. */
interface Maintenance extends Omit<End, 'early'> {
  /** Pods that were there when it was said to be in maintenance. */
  readonly early: readonly string[];
  /** What is left of it on Node and Machine. */
  readonly left: readonly string[];
}

/** A machine with two pods, as somebody sees it while its manager has a fault. */
interface Scene {
  readonly pool: Pool;
  readonly cloud: SimulatedCloud;
  readonly workload: Workload;
  readonly name: string;
  /** Waits for what the managers do. */
  readonly until: (what: string, isSo: () => Promise<boolean>) => Promise<void>;
}

/** Has a machine with two pods run undisturbed, and does `act` while the n-th mutation from there on goes wrong. */
async function withFault(
  n: number,
  point: Point,
  act: (scene: Scene) => Promise<void>,
  flags: Readonly<Record<string, string>> = {},
): Promise<Omit<End, 'early'> & { readonly texts: readonly string[] }> {
  await using cloud = await SimulatedCloud.start({ site });
  await using pool = await Pool.create({ site, cloud, replicas: 0 });
  const workload = await Workload.open(site.api, pool.namespace);
  const [crash, after] = [new CrashPoint(n, point), new CrashPoint(0, point)];
  let isArmed = false;
  const start = (watched: CrashPoint): Promise<InProcessManager> => {
    const intercept: typeof watched.intercept = async (mutation, send) =>
      isArmed ? await watched.intercept(mutation, send) : await send();
    return InProcessManager.start({ ...pool.access, flags, hooks: { intercept, interceptDriver: intercept } });
  };
  await using managers = await Succession.start(
    crash,
    () => start(crash),
    () => start(after),
  );
  const name = await pool.addMachine();
  await workload.pod(name);
  await workload.pod(name);
  // Whatever has not run yet may be evicted despite its budget.
  await workload.untilReady();
  const until = async (what: string, isSo: () => Promise<boolean>): Promise<void> => {
    const patience = { timeoutMs: 480_000, intervalMs: 200, describe: `${name} to ${what} (${n} ${point})` };
    await Promise.race([eventually(isSo, patience), managers.failed]);
  };

  isArmed = true;
  const failure = await act({ pool, cloud, workload, name, until }).then(
    () => undefined,
    (err: unknown) => (err instanceof Error ? err.message : String(err)),
  );
  const texts = [...crash.texts, ...after.texts];
  const killed = texts.filter((text) => text.startsWith('DELETE pods'));
  return { n, hit: crash.texts[n - 1], failure, mutations: crash.texts.length, ofFirst: crash.texts, killed, texts };
}

/** Takes an undisturbed machine into maintenance and back, while the n-th mutation from there on goes wrong. */
async function maintainWith(n: number, point: Point): Promise<Maintenance> {
  const early: string[] = [];
  const left: string[] = [];
  const { texts, ...end } = await withFault(n, point, async ({ pool, workload, name, until }) => {
    const untilShown = async (reason: string): Promise<void> =>
      await until(`be ${reason}`, async () => {
        const { conditions = [] } = (await workload.node(name)).status ?? {};
        return conditions.some((one) => one.type === MAINTENANCE && one.reason === reason);
      });
    await pool.annotate(name, { [MAINTENANCE_ANNOTATION]: 'true' });
    await untilShown('InMaintenance');
    early.push(...(await leftAt(workload, name)));
    if ((await workload.node(name)).spec?.unschedulable !== true) early.push('a Node that is not cordoned');
    await pool.annotate(name, { [MAINTENANCE_ANNOTATION]: null });
    await untilShown('NotInMaintenance');
    await until('show nothing of it', async () => (await marksOf(pool, name)).length === 0);
    const { metadata, spec } = await workload.node(name);
    left.push(...Object.keys(metadata.annotations ?? {}).filter((key) => /maintenance|scale-down-disabled/.test(key)));
    if (spec?.unschedulable === true) left.push('the cordon');
  });
  return { ...end, early, killed: texts.filter((text) => /^(DELETE|DRIVER)/.test(text)), left };
}

/** Has a deletion prepared, or aborted while a budget blocks it, while the n-th mutation from there on goes wrong. */
async function prepareWith(isAborted: boolean, n: number, point: Point): Promise<Maintenance> {
  const early: string[] = [];
  const left: string[] = [];
  const { texts, ...end } = await withFault(n, point, async ({ pool, workload, name, until }) => {
    const isCordoned = async (): Promise<boolean> => (await workload.node(name)).spec?.unschedulable === true;
    if (isAborted) await workload.forbidEvictions(2);
    await pool.annotate(name, { [PREPARE_DELETION_ANNOTATION]: 'true' });
    if (!isAborted) {
      await pool.untilEmpty();
      left.push(...(await leftAt(workload, name)));
      return;
    }
    await until('be cordoned', isCordoned);
    await pool.annotate(name, { [PREPARE_DELETION_ANNOTATION]: null });
    await until('be as before', async () => {
      const machine = await pool.machine(name);
      const isOver = !hasPreparationBegun(machine) && preparationShownBy(machine) === undefined;
      return isOver && !(await isCordoned());
    });
    if ((await workload.pods()).length !== 2) early.push('a pod that is gone');
  });
  const destroyed = texts.filter((text) => /^(DELETE machines|DRIVER)/.test(text));
  if (isAborted) early.push(...destroyed);
  // Pods are evicted while the machine is still there, and its deletion finds none.
  const evicted = texts.findLastIndex((text) => text.includes('/eviction'));
  const deleted = texts.findIndex((text) => text.startsWith('DELETE machines'));
  if (!isAborted && evicted > deleted) early.push(`${texts[evicted]} after ${texts[deleted]}`);
  return { ...end, early, left };
}

/** Has a machine deleted that the provider does not delete, by force, while the n-th mutation from there on goes wrong. */
async function forceWith(n: number, point: Point): Promise<Maintenance> {
  const early: string[] = [];
  const act = async ({ pool, cloud, name, until }: Scene): Promise<void> => {
    const { uid } = (await pool.machine(name)).metadata;
    cloud.setFaults([{ method: 'DeleteMachine', effect: 'fail', code: 'Unavailable' }]);
    await pool.annotate(name, { [DELETION_POLICY_ANNOTATION]: 'forced' });
    await pool.deleteMachine(name);
    await until('be let go', async () => (await pool.machines()).length === 0);
    if ((await cloud.vms()).length !== 1) early.push('a VM that is gone');
    if (!(`${FORCED_REMOVAL_PREFIX}/${uid}` in (await pool.classAnnotations())))
      early.push('a class that notes nothing');
    cloud.setFaults([]);
    await until('lose its VM', async () => (await cloud.vms()).length === 0);
    // As the node lifecycle controller would: a Node that is ready stays. It may be gone by now.
    await Promise.allSettled([cloud.simulation.nodes?.setReadiness(name, 'unknown')]);
    await pool.untilEmpty();
  };
  const { texts, ...end } = await withFault(n, point, act, FORCED);
  // Its VM is deleted by whoever finds it; nothing of its Node is emptied.
  return { ...end, early, killed: texts.filter((text) => /eviction|^DELETE pods/.test(text)), left: [] };
}

/** What the Machine shows of a maintenance. */
async function marksOf(pool: Pool, name: string): Promise<string[]> {
  const { annotations = {} } = (await pool.machine(name)).metadata;
  return Object.keys(annotations).filter((key) => key.includes('maintenance'));
}

async function leftAt(workload: Workload, nodeName: string): Promise<string[]> {
  const pods = await workload.pods();
  const attachments = await workload.attachments(nodeName);
  return [...pods, ...attachments].map(({ metadata }) => metadata.name);
}

/** A life without a fault, and one for each mutation of that at which something goes wrong in this run. */
async function walk<T extends End | Maintenance>(
  name: string,
  live: (n: number, point: Point) => Promise<T>,
  { kinds = false }: { readonly kinds?: boolean } = {},
): Promise<{ readonly all: readonly T[]; readonly hit: readonly T[] }> {
  const undisturbed = await live(0, 'before');
  const queue = new PQueue({ concurrency: CONCURRENCY });
  const rows = sampled(crashTable(name, undisturbed.ofFirst, { least: LIVES, kinds }));
  const hit = await queue.addAll(
    rows.map(
      ({ n, point }) =>
        () =>
          hitAt(n, (at) => live(at, point)),
    ),
  );
  return { all: [undisturbed, ...hit], hit };
}

describe('a manager that dies or loses an answer at its n-th mutation', () => {
  test.each([
    { how: 'a deletion', force: false },
    { how: 'a deletion by force', force: true },
  ])(
    'leaves nothing of $how, and takes no VM from under pods or volumes',
    async ({ how, force }) => {
      const { all, hit } = await walk(`crash points of ${how}`, (n, point) => endWith(force, n, point), {
        kinds: !force,
      });

      expect(all.filter(({ failure, early }) => failure !== undefined || early.length > 0)).toEqual([]);
      expect(all.filter(({ killed }) => killed.length > 0 !== force)).toEqual([]);
      expect(hit.filter((end) => end.hit === undefined)).toEqual([]);
    },
    900_000,
  );

  // promise: maintenance/manager-dies-loses-answer
  test('ends a maintenance that was begun, and gives the Node back as it was', async () => {
    const { all, hit } = await walk('crash points of a maintenance', maintainWith);

    expect(
      all.filter(
        ({ failure, early, killed, left }) =>
          failure !== undefined || early.length > 0 || killed.length > 0 || left.length > 0,
      ),
    ).toEqual([]);
    expect(hit.filter((one) => one.hit === undefined)).toEqual([]);
  }, 900_000);

  // promise: deletion-policies/manager-dies-loses-answer
  test('lets a machine go by force once its class notes that, and leaves neither VM nor Node', async () => {
    const { all, hit } = await walk('crash points of a removal by force', forceWith);

    const isWrong = ({ failure, early, killed }: Maintenance): boolean =>
      failure !== undefined || [...early, ...killed].length > 0;
    expect(all.filter(isWrong)).toEqual([]);
    expect(hit.filter((one) => one.hit === undefined)).toEqual([]);
  }, 900_000);

  // promise: deletions-aborted/manager-dies-loses-answer
  test.each([
    { how: 'prepared deletion', isAborted: false },
    { how: 'prepared deletion that is aborted', isAborted: true },
  ])(
    'ends a $how that was begun, as a whole',
    async ({ how, isAborted }) => {
      const { all, hit } = await walk(`crash points of a ${how}`, (n, point) => prepareWith(isAborted, n, point));

      const isWrong = ({ failure, early, killed, left }: Maintenance): boolean =>
        failure !== undefined || [...early, ...killed, ...left].length > 0;
      expect(all.filter(isWrong)).toEqual([]);
      expect(hit.filter((one) => one.hit === undefined)).toEqual([]);
    },
    900_000,
  );
});
