import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import PQueue from 'p-queue';

import type { Table } from '../../hack/test/sample.ts';
import { MACHINE_FINALIZER } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Driver, MachineRequest } from '../../pkg/driver/driver.ts';
import type { FaultRule } from '../../packages/providers/sim/faults.ts';
import type { Interceptor } from '../../pkg/kube/gate/interceptor.ts';
import { CrashPoint, hitAt, type Point, POINTS } from '../cloud/crash-point.ts';
import { type CrashRow, crashTable } from '../cloud/crash-table.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { Succession } from '../cloud/succession.ts';
import { eventually } from '../expect/eventually.ts';
import { sampled } from '../expect/sampled.ts';

/*
 * The MachineClass changes under a machine that is being created, and the manager dies at one of its mutations, or loses its answer.
 * Either the machine comes to name a class of another account, whose provider knows nothing of its VM; the API server has the original's
 * definitions, which allow that. Or the class is corrected while a call with its former content is about to fail.
 *
 * In simulated worlds, such lives are hit at many mutations: test/crash-points. Programs that talk over connections are shown one of each kind,
 * and each mutation with MACHINIST_TEST_SAMPLE=all.
 */
/** Lives of all walks at a time: they mostly wait, some for two minutes until nothing of an unanswered creation can come any more. */
const queue = new PQueue({ concurrency: 8 });
const OTHER = 'other';
/** What nobody owns is found soon. */
const EAGER = { 'machine-safety-orphan-vms-period': '1s', 'machine-safety-orphan-vms-grace': '1s' };
const PATIENCE = { timeoutMs: 180_000, intervalMs: 200 };

let site: Site;

beforeAll(async () => {
  site = await Site.drawn({ crds: 'original' });
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

/** A life of one machine with one fault in it. */
interface Life {
  readonly n: number;
  readonly point: Point;
  readonly hit: string | undefined;
  readonly failure: string | undefined;
  /** Mutations of the first manager until the machine ran, and what they were. */
  readonly mutations: number;
  readonly texts: readonly string[];
  /** Providers of all VMs that were ever made. */
  readonly created: readonly string[];
}

/** A life without a fault, and those that this run takes. */
async function walk<R extends CrashRow>(
  undisturbed: () => Promise<Life>,
  tableOf: (texts: readonly string[]) => Table<R>,
  live: (n: number, row: R) => Promise<Life>,
): Promise<readonly Life[]> {
  const first = await undisturbed();
  const rows = sampled(tableOf(first.texts.slice(0, first.mutations)));
  const lives = rows.map((row) => () => hitAt(row.n, (n) => live(n, row)));
  return [first, ...(await queue.addAll(lives))];
}

function reasonOf(err: unknown): string {
  return err instanceof Error ? err.message : String(err);
}

/** A driver whose calls with the other class go to another account, which has another driver here. */
function ofTwoAccounts(own: Driver, other: Driver): Driver {
  return new Proxy(own, {
    get(target, method) {
      const member: unknown = Reflect.get(target, method);
      if (typeof member !== 'function') return member;
      return (request: Partial<MachineRequest> | undefined, ...rest: unknown[]): unknown => {
        const account = request?.machineClass?.metadata.name === OTHER ? other : target;
        return (Reflect.get(account, method) as typeof member).call(account, request, ...rest) as unknown;
      };
    },
  });
}

/** The n-th mutation of a creation goes wrong; the machine comes to name the other class just before it, or just after it. */
async function switchAt(
  n: number,
  point: Point,
  { when, idempotentCreate }: { readonly when: 'before' | 'after'; readonly idempotentCreate: boolean },
): Promise<Life> {
  const capabilities = { idempotentCreate };
  await using first = await SimulatedCloud.start({ site, capabilities });
  await using second = await SimulatedCloud.start({ site, capabilities });
  await using pool = await Pool.create({ site, cloud: first, replicas: 0 });
  await pool.addClass(OTHER);
  const driver = await first.serveAnother((own) => ofTwoAccounts(own, second.simulation.driver));
  const crash = new CrashPoint(n, point);
  const access = { ...pool.access, driver, flags: EAGER };
  let name = '';
  let switched: Promise<void> | undefined;
  const switchClass = async (): Promise<void> => await (switched ??= pool.switchClass(name, OTHER));
  const intercept: Interceptor = async (mutation, send) => {
    if (name === '') return await send();
    const isNext = crash.texts.length === n - 1 && !mutation.text.startsWith('POST events');
    if (isNext && when === 'before') await switchClass();
    try {
      return await crash.intercept(mutation, send);
    } finally {
      if (crash.isHit) await switchClass();
    }
  };
  await using managers = await Succession.start(
    crash,
    () => InProcessManager.start({ ...access, hooks: { intercept, interceptDriver: intercept } }),
    () => InProcessManager.start(access),
  );
  let mutations = 0;
  const vms = async (): Promise<readonly string[]> => [
    ...(await first.vms()).map(() => 'pool'),
    ...(await second.vms()).map(() => OTHER),
  ];
  const live = async (): Promise<void> => {
    name = await pool.postMachine();
    await eventually(
      async () => {
        expect((await pool.machine(name)).status?.currentStatus?.phase).toBe('Running');
        expect(await vms()).toHaveLength(1);
      },
      { ...PATIENCE, describe: `${name} to run (${n} ${point})` },
    );
    mutations = crash.texts.length;
    await switchClass();

    // Both are deleted; that of the VM stays, or nobody could delete the VM.
    await Promise.all([pool.deleteClass('pool'), pool.deleteClass(OTHER)]);
    const [owner = ''] = await vms();
    expect((await pool.machineClass(owner)).metadata.finalizers).toContain(MACHINE_FINALIZER);
    await pool.deleteMachine(name);
    const nothing = async (): Promise<void> => {
      expect(await vms()).toEqual([]);
      expect(await pool.machines()).toEqual([]);
      for (const one of ['pool', OTHER]) await expect(pool.machineClass(one)).rejects.toThrow('404');
    };
    await eventually(nothing, { ...PATIENCE, describe: `nothing to be left of ${name} (${n} ${point})` });
  };
  const failure = await Promise.race([live(), managers.failed]).then(() => undefined, reasonOf);
  const created = [...first.created.map(() => 'pool'), ...second.created.map(() => OTHER)];
  return { n, point, hit: crash.texts[n - 1], failure, mutations, texts: crash.texts, created };
}

/** What one correction is about: how the calls with the former content fail. */
interface Correction {
  readonly what: string;
  readonly rule: Pick<FaultRule, 'code' | 'message' | 'retryAfterMs' | 'terminal'>;
}

/** The class is corrected while CreateMachine is about to fail for long, and the n-th mutation from there on goes wrong. */
async function correctAt(n: number, point: Point, { rule }: Correction): Promise<Life> {
  const fails: FaultRule = { method: 'CreateMachine', effect: 'fail', times: 1, ...rule };
  await using cloud = await SimulatedCloud.start({ site, faults: [fails] });
  await using pool = await Pool.create({ site, cloud, replicas: 0 });
  const crash = new CrashPoint(n, point);
  const managerOf = Promise.withResolvers<InProcessManager>();
  let corrected: Promise<void> | undefined;
  const correct = async (): Promise<void> => {
    const generation = await pool.changeClass({ providerSpec: { zone: pool.namespace, size: 'large' } });
    const { operator } = await managerOf.promise;
    await eventually(
      () => {
        const [seen] = operator.caches.classes.list();
        expect(seen?.metadata.generation).toBe(generation);
      },
      { ...PATIENCE, intervalMs: 10, describe: 'the manager to see the class' },
    );
  };
  const intercept: Interceptor = async (mutation, send) => {
    const isCreation = mutation.text.startsWith('DRIVER create_machine');
    if (!isCreation && corrected === undefined) return await send();
    return await crash.intercept(mutation, async () => {
      if (isCreation) await (corrected ??= correct());
      return await send();
    });
  };
  await using managers = await Succession.start(
    crash,
    async () => {
      const hooks = { intercept, interceptDriver: intercept };
      const manager = await InProcessManager.start({ ...pool.access, flags: EAGER, hooks });
      managerOf.resolve(manager);
      return manager;
    },
    () => {
      // What the first one did not come to was never to fail.
      cloud.setFaults([]);
      return InProcessManager.start({ ...pool.access, flags: EAGER });
    },
  );
  let mutations = 0;
  const live = async (): Promise<void> => {
    const replicas = 2;
    await pool.scale(1);
    await eventually(() => expect(cloud.calls['CreateMachine'] ?? 0).toBeGreaterThan(0), PATIENCE);
    // The second one shares what its class has come to.
    await pool.scale(replicas);
    await pool.untilUp(replicas, PATIENCE);
    mutations = crash.texts.length;
    await pool.delete();
    await pool.untilGone(PATIENCE);
  };
  const failure = await Promise.race([live(), managers.failed]).then(() => undefined, reasonOf);
  const created = cloud.created.map(() => 'pool');
  return { n, point, hit: crash.texts[n - 1], failure, mutations, texts: crash.texts, created };
}

/** When a class is switched, and what goes wrong then. */
const SWITCHES = [
  { point: 'before', when: 'before' },
  { point: 'after', when: 'before' },
  { point: 'after', when: 'after' },
  { point: 'lost', when: 'before' },
  { point: 'lost', when: 'after' },
] as const;

/** One mutation of the creation of a machine, and when its class is switched. */
interface SwitchRow extends CrashRow {
  readonly when: 'before' | 'after';
}

/** A sample has each of these at one mutation. */
function switchTable(name: string, texts: readonly string[], switches: readonly Omit<SwitchRow, 'n' | 'kind'>[]) {
  const nameOf = ({ n, point, when, kind }: SwitchRow): string => `${point}, just ${when} ${n}: ${kind}`;
  const { rows } = crashTable(name, texts, { least: 0 });
  return {
    name,
    rows: switches.flatMap(({ point, when }) =>
      rows.filter((row) => row.point === point).map((row): SwitchRow => ({ ...row, when })),
    ),
    nameOf,
    kindsOf: ({ point, when }: SwitchRow) => [`${point} ${when}`],
  } satisfies Table<SwitchRow>;
}

describe('a manager that dies or loses an answer at its n-th mutation', () => {
  test('makes one VM for a machine whose class is switched just before it or just after, and the class of the VM stays', async () => {
    const lives = await walk(
      () => switchAt(0, 'before', { when: 'before', idempotentCreate: false }),
      (texts) => switchTable('switches of a class', texts, SWITCHES),
      (n, { point, when }) => switchAt(n, point, { when, idempotentCreate: false }),
    );

    expect(lives.filter(({ failure, created }) => failure !== undefined || created.length !== 1)).toEqual([]);
    // The one that is not disturbed.
    expect(lives.filter(({ hit }) => hit === undefined)).toHaveLength(1);
  }, 900_000);

  test('leaves no VM in the account of the former class where a creation may be repeated', async () => {
    const lives = await walk(
      () => switchAt(0, 'after', { when: 'after', idempotentCreate: true }),
      (texts) => switchTable('switches of a class that repeats creations', texts, [{ point: 'after', when: 'after' }]),
      (n, { point, when }) => switchAt(n, point, { when, idempotentCreate: true }),
    );

    // What was asked for and not recorded is found, and deleted, by the list of the former class.
    expect(lives.filter(({ failure, created }) => failure !== undefined || created.length > 2)).toEqual([]);
  }, 900_000);

  test.each<Correction>([
    {
      what: 'cannot be made',
      rule: { code: 'InvalidArgument', message: 'no such size', terminal: true },
    },
    {
      what: 'has no room',
      rule: { code: 'ResourceExhausted', message: 'no room', retryAfterMs: 600_000 },
    },
  ])(
    'makes the machines of a class soon that was corrected while its provider was about to say that it $what',
    async (correction) => {
      const lives = await walk(
        () => correctAt(0, POINTS[0], correction),
        (texts) => crashTable(`corrections of a class: it ${correction.what}`, texts, { least: POINTS.length }),
        (n, { point }) => correctAt(n, point, correction),
      );

      expect(lives.filter(({ failure, created }) => failure !== undefined || created.length !== 2)).toEqual([]);
    },
    900_000,
  );
});
