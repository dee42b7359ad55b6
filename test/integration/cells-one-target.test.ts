import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';

import type { Finding } from '../../cmd/machinist/preflight/findings.ts';
import {
  CELL_MOVES_TO_ANNOTATION,
  FORCE_DELETION_LABEL,
  NODE_FINALIZER,
  NOT_MANAGED_ANNOTATION,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import { MINUTE_MS } from '../../pkg/base/clock/clock.ts';
import type { Interceptor } from '../../pkg/kube/gate/interceptor.ts';
import { CELL_LEASES, cellsControl, CellsManager, QUICK_LEASES } from '../cloud/cells-manager.ts';
import { TestCell } from '../cloud/cell.ts';
import { PassingClock } from '../cloud/passing-clock.ts';
import { Site } from '../cloud/site.ts';
import { Program } from '../e2e/program.ts';
import { eventually } from '../expect/eventually.ts';
import { FaultProxy } from '../proxy/fault-proxy.ts';

const TEST_MS = 300_000;
const PATIENCE = { timeoutMs: 90_000, intervalMs: 100 };
const SELECTED = { labels: { cell: '' } };

let control: Site;
let target: Site;
let one: TestCell;
let other: TestCell;
/** Of machines in two namespaces; each test has its own, since machines of the tests before may be left, and would have it. */
let twin: string;
let tests = 0;
/** Of managers. */
let clock: PassingClock;
/** What managers have written. */
let written: string[];

const intercept: Interceptor = (mutation, send) => {
  written.push(mutation.text);
  return send();
};

beforeAll(async () => {
  control = await cellsControl();
});

afterAll(async () => {
  await control[Symbol.asyncDispose]();
});

beforeEach(async () => {
  written = [];
  clock = new PassingClock();
  twin = `twin-${(tests += 1)}`;
  target = await Site.drawnTarget();
  one = await TestCell.create(control, 'one', { replicas: 0, target });
  other = await TestCell.create(control, 'other', { replicas: 0, target });
});

afterEach(async () => {
  // The next test has another target cluster, and machines of this one may be left.
  await deleteClaims();
  await other[Symbol.asyncDispose]();
  await one[Symbol.asyncDispose]();
  await target[Symbol.asyncDispose]();
});

/** A manager whose cells have one target cluster. */
async function start(flags: Readonly<Record<string, string>> = {}): Promise<CellsManager> {
  return await CellsManager.start({
    kubeconfig: control.kubeconfig,
    namespace: CELL_LEASES,
    drivers: `${one.driver},${other.driver}`,
    flags: { 'cell-kubeconfig-secret': '', 'target-kubeconfig': target.kubeconfig, ...flags },
    hooks: { intercept },
    clock,
  });
}

/** The same where each has a kubeconfig of its own, for the same cluster. */
async function startWithOwnTargets(): Promise<CellsManager> {
  return await CellsManager.start({
    kubeconfig: control.kubeconfig,
    namespace: CELL_LEASES,
    drivers: `${one.driver},${other.driver}`,
    flags: { 'machine-health-timeout': '1s', 'machine-creation-timeout': '5s' },
    hooks: { intercept },
  });
}

/** A cell that has had a machine in a target cluster of its own; resolves when its manager has ended, with how another one is started. */
async function managedWithOwnTarget(own: TestCell) {
  const drivers = [one, own].map(({ driver }) => driver).join(',');
  const how = { kubeconfig: control.kubeconfig, namespace: CELL_LEASES, drivers };
  const before = await CellsManager.start(how);
  await own.mark(control, SELECTED);
  await own.pool.scale(1);
  const names = await own.pool.untilUp(1);
  await before.terminate();
  return { how, names };
}

interface Claim {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly holderIdentity: string };
}

const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${CELL_LEASES}/leases`;

async function targetLeases(): Promise<readonly Claim[]> {
  const { items } = await control.api.send<{ items: readonly Claim[] }>('GET', LEASES);
  return items.filter(({ metadata }) => metadata.name.startsWith('machinist-target-'));
}

async function deleteClaims(): Promise<void> {
  for (const { metadata } of await targetLeases()) await control.api.send('DELETE', `${LEASES}/${metadata.name}`);
}

/** What Events of a cell say of a target cluster that it must not have. */
async function refusals({ namespace }: TestCell): Promise<readonly string[]> {
  const path = `/api/v1/namespaces/${namespace}/events?fieldSelector=reason=TargetClusterChanged`;
  const { items } = await control.api.send<{ items: readonly { readonly message: string }[] }>('GET', path);
  return items.map(({ message }) => message);
}

async function select(): Promise<void> {
  for (const cell of [one, other]) await cell.mark(control, SELECTED);
}

async function nodes(): Promise<readonly Node[]> {
  return (await target.api.send<{ items: readonly Node[] }>('GET', '/api/v1/nodes')).items;
}

async function nodeNamed(name: string): Promise<Node | undefined> {
  return (await nodes()).find(({ metadata }) => metadata.name === name);
}

async function untilRunning({ pool }: TestCell, name: string): Promise<Machine> {
  return await eventually(async () => {
    const machine = await pool.machine(name);
    expect(machine.status?.currentStatus?.phase).toBe('Running');
    return machine;
  }, PATIENCE);
}

async function untilWaiting({ pool }: TestCell, name: string): Promise<Machine> {
  return await eventually(async () => {
    const machine = await pool.machine(name);
    expect(machine.status?.lastOperation).toMatchObject({ type: 'Create', errorCode: 'NameTaken' });
    return machine;
  }, PATIENCE);
}

async function untilGone({ pool }: TestCell, name: string): Promise<void> {
  await eventually(async () => {
    expect((await pool.machines()).map(({ metadata }) => metadata.name)).not.toContain(name);
  }, PATIENCE);
}

async function untilOutage(manager: CellsManager, isOngoing: boolean): Promise<void> {
  await eventually(async () => {
    expect(await manager.page('/metrics')).toContain(`machinist_cluster_outage{cluster="target"} ${isOngoing ? 1 : 0}`);
  }, PATIENCE);
}

/** Sum of the series that begin like this. */
async function countOf(manager: CellsManager, series: string): Promise<number> {
  const lines = (await manager.page('/metrics')).split('\n').filter((line) => line.startsWith(series));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

test(
  'cells with one target cluster roll their machines, and none touches Nodes of the other; a Node of nobody is marked once',
  async () => {
    await using manager = await start({ 'machine-creation-timeout': '20s' });
    await select();
    await one.pool.scale(3);
    await other.pool.scale(2);
    await one.pool.untilUp(3);
    await other.pool.untilUp(2);

    await one.pool.roll('two');
    await other.pool.roll('two');
    await eventually(() => expect([one, other].map(({ cloud }) => cloud.created.length)).toEqual([6, 4]), PATIENCE);
    await one.pool.untilUp(3);
    await other.pool.untilUp(2);
    // It comes last: any other Node would have been marked before.
    await target.api.send('POST', '/api/v1/nodes', { metadata: { name: 'foreign' } });
    await eventually(async () => {
      expect((await nodeNamed('foreign'))?.metadata.annotations).toHaveProperty([NOT_MANAGED_ANNOTATION]);
    }, PATIENCE);

    for (const { cloud } of [one, other]) expect([...cloud.doubled]).toEqual([]);
    expect(written.filter((text) => text.includes('nodes foreign'))).toEqual(['PATCH nodes foreign']);
    // It is counted when the answer has come.
    const marked = (): Promise<number> => countOf(manager, 'machinist_unmanaged_nodes_total{action="marked"');
    await eventually(async () => expect(await marked()).toBe(1), PATIENCE);
    for (const { metadata } of (await nodes()).filter(({ metadata: { name } }) => name !== 'foreign')) {
      expect(metadata.annotations ?? {}).not.toHaveProperty([NOT_MANAGED_ANNOTATION]);
      expect(metadata.finalizers).toContain(NODE_FINALIZER);
    }
  },
  TEST_MS,
);

test(
  'of two machines of one name in two namespaces one waits and says so; its deletion leaves the Node alone, and that of the other one lets it begin',
  async () => {
    await using _manager = await start();
    await select();
    await one.pool.postMachine({}, twin);
    await untilRunning(one, twin);
    const joined = await nodeNamed(twin);

    await other.pool.postMachine({}, twin);
    const waiting = await untilWaiting(other, twin);
    expect(waiting.status?.lastOperation?.description).toContain('a Machine in another namespace, which has it');
    expect(waiting.status?.conditions ?? []).toEqual([]);
    await other.pool.deleteMachine(twin);
    await untilGone(other, twin);

    expect((await nodeNamed(twin))?.metadata.uid).toBe(joined?.metadata.uid);
    expect((await untilRunning(one, twin)).metadata.deletionTimestamp).toBeUndefined();
    expect(other.cloud.created).toEqual([]);
    await other.pool.postMachine({}, twin);
    await untilWaiting(other, twin);
    await one.pool.deleteMachine(twin);
    await untilGone(one, twin);
    await untilRunning(other, twin);

    expect((await nodeNamed(twin))?.metadata.uid).not.toBe(joined?.metadata.uid);
    expect(one.cloud.created).toHaveLength(1);
    expect(other.cloud.created).toHaveLength(1);
    expect(await one.cloud.vms()).toEqual([]);
  },
  TEST_MS,
);

test(
  'a machine whose label names a Node of nobody, or that of a machine in another namespace, leaves it as it is, also when it is deleted',
  async () => {
    await using _manager = await start();
    await one.mark(control, SELECTED);
    await one.pool.postMachine({}, twin);
    await untilRunning(one, twin);
    await target.api.send('POST', '/api/v1/nodes', { metadata: { name: 'nobody' } });
    const before = await Promise.all(['nobody', twin].map(nodeNamed));
    const claims = [
      ['first', 'nobody'],
      ['second', twin],
    ] as const;
    for (const [name, node] of claims) {
      await other.pool.postMachine({ providerID: `sim:///${name}` }, name);
      await other.pool.label(name, { node });
    }

    await other.mark(control, SELECTED);
    for (const [name] of claims) {
      await eventually(async () => {
        expect((await other.pool.machine(name)).status?.currentStatus?.phase).toBeDefined();
      }, PATIENCE);
      await other.pool.deleteMachine(name);
      await untilGone(other, name);
    }

    expect(written.filter((text) => text.includes('nodes nobody') || text === `DELETE nodes ${twin}`)).toEqual([]);
    const after = await Promise.all(['nobody', twin].map(nodeNamed));
    const shapes = [before, after].map((all) =>
      all.map((node) => [node?.metadata.uid, node?.metadata.finalizers, node?.metadata.labels, node?.spec]),
    );
    expect(shapes[1]).toEqual(shapes[0]);
    expect((await untilRunning(one, twin)).metadata.deletionTimestamp).toBeUndefined();
  },
  TEST_MS,
);

test(
  'a machine waits for one of its name in a namespace that is no cell',
  async () => {
    await using _manager = await start();
    await one.mark(control, SELECTED);
    await other.pool.postMachine({ providerID: 'sim:///elsewhere' }, twin);

    await one.pool.postMachine({}, twin);
    await untilWaiting(one, twin);

    expect(one.cloud.created).toEqual([]);
  },
  TEST_MS,
);

test(
  'a namespace whose machines have a target cluster of their own stays as it is, and says so',
  async () => {
    await using own = await TestCell.create(control, 'own', { replicas: 0 });
    const { how, names } = await managedWithOwnTarget(own);

    await using _manager = await CellsManager.start({
      ...how,
      flags: { 'cell-kubeconfig-secret': '', 'target-kubeconfig': target.kubeconfig, 'machine-health-timeout': '1s' },
    });
    await one.mark(control, SELECTED);
    await one.pool.scale(1);
    await one.pool.untilUp(1);
    await eventually(async () => expect(await refusals(own)).toHaveLength(1), PATIENCE);

    expect(await own.pool.untilUp(1)).toEqual(names);
    expect(own.cloud.created).toHaveLength(1);
  },
  TEST_MS,
);

test(
  'the next start with another target cluster touches no machine, and says so',
  async () => {
    const before = await start();
    await one.mark(control, SELECTED);
    await one.pool.scale(2);
    const names = await one.pool.untilUp(2);
    await before.terminate();
    await using elsewhere = await Site.drawnTarget();
    written = [];

    const flags = { 'machine-health-timeout': '1s', 'machine-creation-timeout': '5s' };
    const wrong = await start({ 'target-kubeconfig': elsewhere.kubeconfig, ...flags });
    await eventually(async () => {
      expect(await wrong.page('/readyz?verbose')).toMatch(
        new RegExp(
          `cell ${one.namespace}: --target-kubeconfig leads to another target cluster than before: the Machines of namespace`,
        ),
      );
    }, PATIENCE);
    await eventually(async () => expect(await refusals(one)).toHaveLength(1), PATIENCE);
    expect((await refusals(one))[0]).toContain('delete Lease machinist-target-');
    await one.pool.scale(3);
    await wrong.terminate();
    expect(written.filter((text) => / machines?(?:sets|deployments)? /.test(text))).toEqual([]);

    await using _right = await start();
    expect(await one.pool.untilUp(3)).toEqual(expect.arrayContaining([...names]));
    expect(one.cloud.created).toHaveLength(3);
  },
  TEST_MS,
);

test(
  'a kubeconfig that comes to name another target cluster ends the process before it touches a machine, or a Node there',
  async () => {
    await using elsewhere = await Site.drawnTarget();
    const folder = mkdtempSync(join(tmpdir(), 'moved-'));
    const file = join(folder, 'kubeconfig');
    copyFileSync(target.kubeconfig, file);
    await elsewhere.api.send('POST', '/api/v1/nodes', { metadata: { name: 'foreign' } });
    await using manager = await start({ 'target-kubeconfig': file, 'machine-health-timeout': '1s' });
    await one.mark(control, SELECTED);
    await one.pool.scale(1);
    const names = await one.pool.untilUp(1);

    copyFileSync(elsewhere.kubeconfig, file);

    // It is read each minute.
    clock.pass(MINUTE_MS);
    expect(await manager.ended).toBe(1);
    rmSync(folder, { recursive: true });
    expect((await one.pool.machines()).map(({ metadata }) => metadata.name)).toEqual(names);
    expect(one.cloud.created).toHaveLength(1);
    const { items } = await elsewhere.api.send<{ items: readonly Node[] }>('GET', '/api/v1/nodes');
    expect(items.map(({ metadata }) => metadata.annotations ?? {})).toEqual([{}]);
  },
  TEST_MS,
);

test(
  'a kubeconfig whose CA is rotated is used, and one that comes to name a proxy ends the process before anything is sent there',
  async () => {
    await using elsewhere = await Site.drawnTarget();
    await using proxy = await FaultProxy.start(elsewhere.plane.connection.url);
    const folder = mkdtempSync(join(tmpdir(), 'moved-'));
    const file = join(folder, 'kubeconfig');
    const text = readFileSync(target.kubeconfig, 'utf8');
    writeFileSync(file, text);
    await using manager = await start({ 'target-kubeconfig': file, 'machine-health-timeout': '1s' });
    await one.mark(control, SELECTED);
    await one.pool.scale(1);
    const names = await one.pool.untilUp(1);
    const loads = 'machinist_kube_credential_loads_total{cluster="target",result="ok"}';
    const before = await countOf(manager, loads);

    const { ca } = target.plane.connection;
    const bundle = Buffer.from(`${elsewhere.plane.connection.ca}\n${ca}`).toString('base64');
    writeFileSync(file, text.replace(Buffer.from(ca).toString('base64'), bundle));
    // It is read each minute.
    clock.pass(MINUTE_MS);
    await eventually(async () => expect(await countOf(manager, loads)).toBeGreaterThan(before), PATIENCE);
    await one.pool.scale(2);
    await one.pool.untilUp(2);
    writeFileSync(file, text.replace('    cluster:\n', `    cluster:\n      proxy-url: ${proxy.url}\n`));

    clock.pass(MINUTE_MS);
    expect(await manager.ended).toBe(1);
    rmSync(folder, { recursive: true });
    expect(proxy.accepted).toBe(0);
    expect((await one.pool.machines()).map(({ metadata }) => metadata.name)).toEqual(
      expect.arrayContaining([...names]),
    );
    expect(one.cloud.created).toHaveLength(2);
  },
  TEST_MS,
);

test(
  'machines that have Nodes are not managed by a manager without a target cluster',
  async () => {
    const before = await start();
    await one.mark(control, SELECTED);
    await one.pool.scale(1);
    const names = await one.pool.untilUp(1);
    await before.terminate();
    // Also where no Lease tells of it.
    await deleteClaims();
    written = [];

    await using _without = await start({ 'target-kubeconfig': 'none' });
    await one.pool.roll('two');
    await eventually(async () => expect(await refusals(one)).toHaveLength(1), PATIENCE);

    expect((await refusals(one))[0]).toContain('this manager has none for them');
    const flags = ['--cells=cell', `--namespace=${CELL_LEASES}`, `--driver=${one.driver}`, '-o', 'json'];
    const clusters = [`--control-kubeconfig=${control.kubeconfig}`, '--target-kubeconfig=none'];
    const { code, stdout } = await Program.run('machinist', ['preflight', ...flags, ...clusters]);
    const { findings } = JSON.parse(stdout) as { findings: readonly Finding[] };
    expect(code).toBe(1);
    expect(findings.flatMap(({ status, detail }) => (status === 'fail' ? [detail] : []))).toEqual([
      `${one.namespace}: its Machines have Nodes in a target cluster, or wait for them, and the flags name none for them; nothing is done for this cell`,
    ]);
    expect((await one.pool.machines()).map(({ metadata }) => metadata.name)).toEqual(names);
    expect(written.filter((text) => / machines?(?:sets|deployments)? /.test(text))).toEqual([]);

    await one.mark(control, { annotations: { [CELL_MOVES_TO_ANNOTATION]: 'none' } });
    await eventually(() => expect(one.cloud.created.length).toBeGreaterThan(1), PATIENCE);
  },
  TEST_MS,
);

test(
  'nor are machines whose Nodes have not joined yet',
  async () => {
    await one.pool.changeClass({ providerSpec: { join: false } });
    const before = await start();
    await one.mark(control, SELECTED);
    await one.pool.postMachine({}, twin);
    await eventually(async () => {
      expect((await one.pool.machine(twin)).status?.currentStatus?.phase).toBe('Pending');
    }, PATIENCE);
    await before.terminate();
    written = [];

    await using _without = await start({ 'target-kubeconfig': 'none', 'machine-creation-timeout': '1s' });
    await eventually(async () => expect(await refusals(one)).toHaveLength(1), PATIENCE);

    expect((await one.pool.machine(twin)).status?.currentStatus?.phase).toBe('Pending');
    expect(written.filter((text) => / machines?(?:sets|deployments)? /.test(text))).toEqual([]);
  },
  TEST_MS,
);

test(
  'a namespace whose machines were those of another manager, with another target cluster, is not managed until it says that they are to move',
  async () => {
    await using own = await TestCell.create(control, 'own', { replicas: 0 });
    const { how, names } = await managedWithOwnTarget(own);
    await own.mark(control, { labels: { cell: null } });
    // As where another manager had it, of whose Leases this one knows nothing.
    await deleteClaims();

    const flags = { 'machine-health-timeout': '1s', 'machine-creation-timeout': '20s' };
    await using manager = await CellsManager.start({
      ...how,
      flags: { 'cell-kubeconfig-secret': '', 'target-kubeconfig': target.kubeconfig, ...flags },
      hooks: { intercept },
    });
    await one.mark(control, SELECTED);
    await one.pool.scale(1);
    await one.pool.untilUp(1);
    written = [];
    await own.mark(control, SELECTED);
    await eventually(async () => expect(await refusals(own)).toHaveLength(1), PATIENCE);

    expect((await refusals(own))[0]).toContain('is in the cluster of --target-kubeconfig: they would all be replaced');
    expect(await manager.page('/readyz?verbose')).toContain(
      `cell ${own.namespace}: None of the Nodes that its Machines have`,
    );
    expect((await own.pool.machines()).map(({ metadata }) => metadata.name)).toEqual(names);
    expect(written.filter((text) => text.includes(names[0] ?? ''))).toEqual([]);

    const { metadata } = await target.api.send<Node>('GET', '/api/v1/namespaces/kube-system');
    await own.mark(control, { annotations: { [CELL_MOVES_TO_ANNOTATION]: metadata.uid } });
    await own.pool.scale(2);
    await eventually(() => expect(own.cloud.created.length).toBeGreaterThan(1), PATIENCE);
  },
  TEST_MS,
);

test(
  'machines with their Nodes in the target cluster are adopted at once, and go on in the next process also when none of the Nodes is left',
  async () => {
    const before = await startWithOwnTargets();
    await one.mark(control, SELECTED);
    await one.pool.scale(1);
    const names = await one.pool.untilUp(1);
    await before.terminate();
    await deleteClaims();

    const adopting = await start();
    await one.pool.scale(2);
    expect(await one.pool.untilUp(2)).toEqual(expect.arrayContaining([...names]));
    expect(one.cloud.created).toHaveLength(2);
    await adopting.terminate();
    for (const { metadata } of await nodes()) {
      await target.api.send('PATCH', `/api/v1/nodes/${metadata.name}`, { metadata: { finalizers: null } });
      await target.api.send('DELETE', `/api/v1/nodes/${metadata.name}`);
    }

    await using _next = await start();
    await one.pool.scale(3);
    await eventually(() => expect(one.cloud.created.length).toBeGreaterThan(2), PATIENCE);

    expect(await refusals(one)).toEqual([]);
  },
  TEST_MS,
);

test(
  'a Lease of the target cluster that somebody deletes beside a replica with another one is made again; when it is gone for good, that replica takes no machine',
  async () => {
    await using elsewhere = await Site.drawnTarget();
    // Nobody dies: neither a starved host nor a minute that passes at once must make a replica lose its Leases.
    const leases = { ...QUICK_LEASES, 'leader-elect-lease-duration': '10m', 'leader-elect-renew-deadline': '8m' };
    const flags = { ...leases, 'machine-health-timeout': '1s', 'machine-creation-timeout': '20s' };
    const right = await start(flags);
    await one.mark(control, SELECTED);
    await one.pool.scale(2);
    const names = await one.pool.untilUp(2);
    const [claim] = await targetLeases();
    await using _wrong = await start({ ...flags, 'target-kubeconfig': elsewhere.kubeconfig });
    await eventually(() => expect(right.process.shards.replicas).toBe(2), PATIENCE);

    await deleteClaims();
    // It is looked for each minute.
    clock.pass(MINUTE_MS);
    await eventually(async () => {
      expect((await targetLeases()).map(({ metadata }) => metadata.name)).toEqual([claim?.metadata.name]);
    }, PATIENCE);
    expect(await one.pool.untilUp(2)).toEqual(names);

    await deleteClaims();
    await right.terminate();
    written = [];
    await eventually(async () => {
      expect((await refusals(one)).some((text) => text.startsWith('No Lease says'))).toBe(true);
    }, PATIENCE);
    expect((await one.pool.machines()).map(({ metadata }) => metadata.name)).toEqual(names);
    expect(await targetLeases()).toEqual([]);
    expect(one.cloud.created).toHaveLength(2);
    expect(written.filter((text) => / machines?(?:sets|deployments)? /.test(text))).toEqual([]);
  },
  TEST_MS,
);

test(
  'a namespace gets no kubeconfig of its own for the target cluster of all while any has machines, until its Lease is deleted',
  async () => {
    const before = await start();
    await select();
    await one.pool.scale(1);
    await other.pool.scale(1);
    const names = await one.pool.untilUp(1);
    await other.pool.untilUp(1);
    await before.terminate();

    const own = await startWithOwnTargets();
    await eventually(async () => {
      const page = await own.page('/readyz?verbose');
      for (const { namespace } of [one, other])
        expect(page).toContain(`cell ${namespace}: Its target cluster is that of all namespaces`);
    }, PATIENCE);
    const seen = await nodes();
    for (const { metadata } of seen) expect(metadata.finalizers).toContain(NODE_FINALIZER);
    expect(seen).toHaveLength(2);
    expect(written.filter((text) => /nodes/.test(text) && text.startsWith('DELETE'))).toEqual([]);

    await own.terminate();

    // As documented: the other namespace has no Machines any more, and the Lease is deleted.
    const after = await start();
    await other.pool.scale(0);
    await eventually(async () => expect(await other.pool.machines()).toEqual([]), PATIENCE);
    await other.mark(control, { labels: { cell: null } });
    await after.terminate();
    await deleteClaims();
    await using _manager = await startWithOwnTargets();
    await eventually(async () => {
      expect((await targetLeases()).map(({ spec }) => spec.holderIdentity)).toEqual([one.namespace]);
    }, PATIENCE);
    expect(await one.pool.untilUp(1)).toEqual(names);
    expect(one.cloud.created).toHaveLength(1);
  },
  TEST_MS,
);

test(
  'a machine that waits for its name is deleted by force, and the VM and the Node of the other one stay',
  async () => {
    await using _manager = await start();
    await select();
    await one.pool.postMachine({}, twin);
    await untilRunning(one, twin);
    const joined = await nodeNamed(twin);
    await other.pool.postMachine({}, twin);
    await untilWaiting(other, twin);

    await other.pool.label(twin, { [FORCE_DELETION_LABEL]: 'True' });
    await other.pool.deleteMachine(twin);
    await untilGone(other, twin);

    expect((await nodeNamed(twin))?.metadata.uid).toBe(joined?.metadata.uid);
    expect((await untilRunning(one, twin)).metadata.deletionTimestamp).toBeUndefined();
    expect(await one.cloud.vms()).toHaveLength(1);
    expect(other.cloud.created).toEqual([]);
  },
  TEST_MS,
);

test(
  'a copy of a machine of another namespace, with its record and its status, has neither its VM nor its Node, nor does its deletion',
  async () => {
    await using _manager = await start();
    await one.mark(control, SELECTED);
    await one.pool.postMachine({}, twin);
    const { spec, status, metadata } = await untilRunning(one, twin);
    const joined = await nodeNamed(twin);
    const path = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${other.namespace}/machines/${twin}`;
    // Of two that are created in one second, nobody can say which is the copy.
    await eventually(async () => {
      const now = { metadata: { generateName: 'now-' } };
      const made = await control.api.send<Machine>('POST', `/api/v1/namespaces/${other.namespace}/secrets`, now);
      expect(made.metadata.creationTimestamp > metadata.creationTimestamp).toBe(true);
    }, PATIENCE);
    await other.pool.postMachine({ providerID: spec.providerID }, twin);
    await other.pool.label(twin, { node: metadata.labels?.['node'] ?? '' });
    await control.api.send('PATCH', `${path}/status`, { status });

    await other.mark(control, SELECTED);
    for (const label of [{}, { [FORCE_DELETION_LABEL]: 'True' }]) {
      await other.pool.label(twin, label);
      await eventually(async () => {
        expect((await other.pool.machine(twin)).status?.lastOperation).toBeDefined();
      }, PATIENCE);
    }
    await other.pool.deleteMachine(twin);
    await untilGone(other, twin);

    const left = await nodeNamed(twin);
    expect(left?.metadata.uid).toBe(joined?.metadata.uid);
    expect(left?.metadata.deletionTimestamp).toBeUndefined();
    expect(left?.spec?.unschedulable ?? false).toBe(false);
    expect((await untilRunning(one, twin)).metadata.deletionTimestamp).toBeUndefined();
    expect(await one.cloud.vms()).toHaveLength(1);
    expect(one.cloud.deleted).toBe(0);
  },
  TEST_MS,
);

test(
  'replicas divide cells with one target cluster, and one that ends in the middle of rollouts leaves nothing behind',
  async () => {
    await using first = await start(QUICK_LEASES);
    await select();
    for (const cell of [one, other]) await cell.pool.scale(3);
    for (const cell of [one, other]) await cell.pool.untilUp(3);
    await using second = await start(QUICK_LEASES);
    await eventually(() => expect(second.process.shards.held.length).toBeGreaterThan(0), PATIENCE);

    for (const cell of [one, other]) await cell.pool.roll('two');
    await eventually(() => {
      expect(one.cloud.created.length + other.cloud.created.length).toBeGreaterThan(6);
    }, PATIENCE);
    expect(await first.terminate()).toBe(0);
    await eventually(() => expect([one, other].map(({ cloud }) => cloud.created.length)).toEqual([6, 6]), PATIENCE);
    for (const cell of [one, other]) await cell.pool.untilUp(3);

    for (const { cloud } of [one, other]) expect([...cloud.doubled]).toEqual([]);
    expect(await nodes()).toHaveLength(6);
    for (const { metadata } of await nodes()) expect(metadata.finalizers).toContain(NODE_FINALIZER);
  },
  TEST_MS,
);

test(
  'an outage of the target cluster stops all cells, and afterwards nothing was replaced',
  async () => {
    await using proxy = await FaultProxy.start(target.plane.connection.url);
    await using manager = await start({
      'target-kubeconfig': await target.kubeconfigThrough(proxy.url),
      'machine-safety-apiserver-statuscheck-timeout': '3s',
      'machine-safety-apiserver-statuscheck-period': '3s',
      'machine-health-timeout': '5s',
    });
    await select();
    for (const cell of [one, other]) await cell.pool.scale(2);
    for (const cell of [one, other]) await cell.pool.untilUp(2);
    const before = (await nodes()).map(({ metadata }) => metadata.uid).toSorted();

    proxy.set('refuse');
    await untilOutage(manager, true);
    const [first = ''] = (await one.pool.machines()).map(({ metadata }) => metadata.name);
    await one.pool.deleteMachine(first);
    await eventually(async () => {
      const { status } = await one.pool.machine(first);
      expect(status?.lastOperation?.errorCode).toBe('ClusterOutage');
    }, PATIENCE);
    expect(one.cloud.deleted + other.cloud.deleted).toBe(0);
    expect((await nodes()).map(({ metadata }) => metadata.uid).toSorted()).toEqual(before);

    proxy.set('up');
    await untilOutage(manager, false);
    await one.pool.untilUp(2);
    await other.pool.untilUp(2);
    expect(one.cloud.created).toHaveLength(3);
    expect(other.cloud.created).toHaveLength(2);
  },
  TEST_MS,
);

test(
  'preflight checks the target cluster of all cells once, and each cell',
  async () => {
    await one.mark(control, SELECTED);
    const flags = ['--cells=cell', `--namespace=${CELL_LEASES}`, `--driver=${one.driver}`, '-o', 'json'];
    const clusters = [`--control-kubeconfig=${control.kubeconfig}`, `--target-kubeconfig=${target.kubeconfig}`];

    const { code, stdout, stderr } = await Program.run('machinist', ['preflight', ...flags, ...clusters]);

    const { findings } = JSON.parse(stdout) as { findings: readonly Finding[] };
    expect([code, stderr]).toEqual([0, '']);
    expect(findings.filter(({ status }) => status === 'fail')).toEqual([]);
    expect(findings.map(({ detail }) => detail)).toEqual(
      expect.arrayContaining([
        `${one.namespace}: in the target cluster of all cells`,
        expect.stringContaining(new URL(target.plane.connection.url).origin),
      ]),
    );
  },
  TEST_MS,
);

test(
  'machines of another target cluster are left alone also where the one of all cells is the control cluster',
  async () => {
    const before = await start();
    await one.mark(control, SELECTED);
    await one.pool.scale(1);
    const names = await one.pool.untilUp(1);
    await before.terminate();

    await using _wrong = await start({ 'target-kubeconfig': control.kubeconfig, 'machine-health-timeout': '1s' });
    await eventually(async () => expect(await refusals(one)).toHaveLength(1), PATIENCE);

    expect((await one.pool.machines()).map(({ metadata }) => metadata.name)).toEqual(names);
    expect(one.cloud.created).toHaveLength(1);
  },
  TEST_MS,
);

test(
  'the control cluster may be the target cluster of all cells',
  async () => {
    await using shared = await TestCell.create(control, 'shared', { replicas: 1, target: control });
    await using _manager = await CellsManager.start({
      kubeconfig: control.kubeconfig,
      namespace: CELL_LEASES,
      drivers: shared.driver,
      flags: { 'cell-kubeconfig-secret': '', 'target-kubeconfig': control.kubeconfig },
    });

    await shared.mark(control, SELECTED);
    await shared.pool.untilUp(1);
    await shared.pool.roll('two');
    await eventually(() => expect(shared.cloud.created).toHaveLength(2), PATIENCE);
    await shared.pool.untilUp(1);
    expect((await targetLeases()).map(({ spec }) => spec.holderIdentity)).toEqual(['*']);
  },
  TEST_MS,
);
