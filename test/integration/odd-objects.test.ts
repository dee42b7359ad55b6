import { afterAll, beforeAll, expect, test } from '@jest/globals';
import PQueue from 'p-queue';

import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import { MACHINE_FINALIZER } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { LogFields, Logger } from '../../pkg/base/log/logger.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';
import { oddObjects, type OddObject } from '../odd-objects.ts';

const PATIENCE = { timeoutMs: 180_000, intervalMs: 500 };
const TEST_MS = 600_000;
const AT_ONCE = 8;
/** The search for VMs without a Machine reads all of these objects, too. */
const QUICK_LOOKS = { 'machine-safety-orphan-vms-period': '2s', 'machine-safety-orphan-vms-grace': '2s' };

/** A member of each sort that controllers read. Every member, with everything strange, is what the unit tests of normalise.ts try. */
const MEMBERS: Readonly<Record<OddObject['kind'], readonly string[]>> = {
  Machine: ['spec', 'spec.class', 'spec.class.name', 'spec.nodeTemplate', 'spec.nodeTemplate.spec.taints'],
  MachineSet: ['spec', 'spec.selector', 'spec.selector.matchExpressions', 'spec.template', 'spec.template.spec'],
  MachineDeployment: [
    'spec',
    'spec.replicas',
    'spec.selector',
    'spec.selector.matchLabels',
    'spec.strategy',
    'spec.strategy.rollingUpdate',
    'spec.strategy.rollingUpdate.maxSurge',
    'spec.template',
    'spec.template.spec',
    'spec.template.spec.class',
    'spec.template.spec.nodeTemplate',
  ],
  MachineClass: ['provider', 'providerSpec', 'secretRef', 'nodeTemplate', 'nodeTemplate.virtualCapacity'],
};
const STRANGE = ['absent', 'null'];

/** The same of members of which the definitions say nothing. */
const FREE_FORM: Readonly<Record<OddObject['kind'], readonly string[]>> = {
  Machine: [
    'spec.nodeTemplate.metadata',
    'spec.nodeTemplate.metadata.labels',
    'spec.nodeTemplate.metadata.annotations',
  ],
  MachineSet: [
    'spec.template.metadata',
    'spec.template.metadata.labels',
    'spec.template.metadata.annotations',
    'spec.template.metadata.finalizers',
  ],
  MachineDeployment: [
    'spec.template.metadata.labels',
    'spec.template.metadata.annotations',
    'spec.template.spec.nodeTemplate.metadata',
    'spec.template.spec.nodeTemplate.metadata.labels',
  ],
  MachineClass: [],
};
const STRANGE_FREE_FORM = ['null', '"text"', '{"a":null,"b":7,"c":"text"}'];

const PLURALS = {
  Machine: 'machines',
  MachineSet: 'machinesets',
  MachineDeployment: 'machinedeployments',
  MachineClass: 'machineclasses',
} as const;
const KINDS = Object.keys(PLURALS) as OddObject['kind'][];

let site: Site;

beforeAll(async () => {
  site = await Site.drawn({ crds: 'original' });
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

/** Collects what is logged as an error. */
class Complaints implements Logger {
  readonly all: string[] = [];

  error({ err, ...fields }: LogFields, message: string): void {
    this.all.push(`${message} ${JSON.stringify(fields)} ${err instanceof Error ? (err.stack ?? '') : ''}`);
  }

  readonly warn = (): void => undefined;
  readonly info = (): void => undefined;
  readonly debug = (): void => undefined;

  child(): Logger {
    return this;
  }
}

/** The table: so few that the test stays short. */
function someOddObjects(): readonly OddObject[] {
  const wanted = new Set(
    KINDS.flatMap((kind) => [
      ...MEMBERS[kind].flatMap((member) => STRANGE.map((strange) => `${kind}.${member} ${strange}`)),
      ...FREE_FORM[kind].flatMap((member) => STRANGE_FREE_FORM.map((strange) => `${kind}.${member} ${strange}`)),
    ]),
  );
  const some = oddObjects().filter(({ what }) => wanted.delete(what));
  expect([...wanted]).toEqual([]);
  return some;
}

const pathOf = (pool: Pool, kind: OddObject['kind'], name = ''): string =>
  `/apis/machine.sapcloud.io/v1alpha1/namespaces/${pool.namespace}/${PLURALS[kind]}${name === '' ? '' : `/${name}`}`;

async function forEach<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  const queue = new PQueue({ concurrency: AT_ONCE });
  await Promise.all(items.map((item) => queue.add(() => run(item))));
}

/** Stores all odd objects that the server takes; resolves with these. */
async function store(pool: Pool, objects: readonly OddObject[]): Promise<readonly OddObject[]> {
  const stored: OddObject[] = [];
  await forEach(objects, async (object) => {
    const { status } = await site.api.request(pathOf(pool, object.kind), { method: 'POST', body: object.body });
    if (status < 300) stored.push(object);
  });
  return stored;
}

/** A Machine of each odd class. */
async function use(pool: Pool, objects: readonly OddObject[]): Promise<void> {
  const classes = objects.filter(({ kind }) => kind === 'MachineClass');
  await forEach(classes, async ({ body }) => {
    const { name } = body['metadata'] as { name: string };
    const machine = {
      apiVersion: API_VERSION,
      kind: 'Machine',
      metadata: { name: `user-of-${name}`, finalizers: [MACHINE_FINALIZER] },
      spec: { class: { kind: 'MachineClass', name } },
    };
    const { status } = await site.api.request(pathOf(pool, 'Machine'), { method: 'POST', body: machine });
    expect(status).toBe(201);
  });
}

async function names(pool: Pool, kind: OddObject['kind']): Promise<readonly string[]> {
  const { body } = await site.api.request(pathOf(pool, kind));
  return (body as { items: { metadata: { name: string } }[] }).items.map(({ metadata }) => metadata.name);
}

test(
  'whatever the original definitions store, no handler and no pass throws, others are served, and all of it can be deleted',
  async () => {
    await using cloud = await SimulatedCloud.start({ site });
    await using pool = await Pool.create({ site, cloud, replicas: 1 });
    const log = new Complaints();
    await using manager = await InProcessManager.start({ ...pool.access, log, flags: QUICK_LOOKS });
    const bugs = async (): Promise<readonly unknown[]> => {
      const handlers = await manager.metric('machinist_cache_handler_errors_total');
      const passes = await manager.metric('machinist_reconcile_passes_total', 'result="bug"');
      return [...(handlers + passes === 0 ? [] : [{ handlers, passes }]), ...log.all];
    };
    /** Waits until something holds, not beyond the first bug. */
    const until = async (holds: () => Promise<void>): Promise<void> => {
      const found = await eventually(async () => {
        const now = await bugs();
        if (now.length === 0) await holds();
        return now;
      }, PATIENCE);
      expect(found).toEqual([]);
    };
    await pool.untilUp(1, PATIENCE);

    const stored = await store(pool, someOddObjects());
    await use(pool, stored);
    expect(stored.length).toBeGreaterThan(70);
    const lookedAt = async (): Promise<number> =>
      await manager.metric('machinist_orphan_vms_last_look_timestamp_seconds');
    const before = await lookedAt();
    await pool.scale(2);
    await until(async () => {
      expect(await lookedAt()).toBeGreaterThan(before);
      const { replicas, availableReplicas } = (await pool.deployment()).status ?? {};
      expect([replicas, availableReplicas]).toEqual([2, 2]);
    });

    for (const kind of ['MachineDeployment', 'MachineSet', 'Machine', 'MachineClass'] as const) {
      await forEach(await names(pool, kind), async (name) => {
        await site.api.request(pathOf(pool, kind, name), { method: 'DELETE' });
      });
    }
    await until(async () => {
      const left = await Promise.all(KINDS.map((kind) => names(pool, kind)));
      expect([left.flat(), await cloud.vms()]).toEqual([[], []]);
    });
    expect(await bugs()).toEqual([]);
  },
  TEST_MS,
);
