import path from 'node:path';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests, readManifests } from '../../hack/control-plane/apply.ts';
import { startControlPlane } from '../../hack/control-plane/control-plane.ts';
import type { IronCoreMachine, IronCoreMachineSpec } from '../../pkg/worlds/ironcore/api/machine.ts';
import { POOL_LEASE_NAMESPACE, type IronCoreMachinePool } from '../../pkg/worlds/ironcore/api/machine-pool.ts';
import type { IronCoreTaint } from '../../pkg/worlds/ironcore/api/taint.ts';
import type { List } from '../../pkg/apis/meta.ts';
import type { Event, Lease } from '../../pkg/apis/wire.ts';
import { PoolHealth } from '../../pkg/worlds/ironcore/controllers/pool-health.ts';
import type { RequestRecord } from '../../pkg/kube/client/transport.ts';
import { CrashPoint } from '../cloud/crash-point.ts';
import { OtherScheduler } from '../cloud/ironcore-others.ts';
import { IriRuntime } from '../../packages/providers/iri/runtime.ts';
import { IRONCORE_KINDS } from '../../pkg/worlds/ironcore/controllers/kinds.ts';
import { Program } from '../e2e/program.ts';
import { simulatedServer, type TestServer } from '../env/api-server.ts';
import { namespace, type TestNamespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { KubeSession } from './kube-session.ts';
import { OperatorSession } from './operator-session.ts';
import { asMachinist, grant } from './shipped-roles.ts';

const GROUP = '/apis/compute.ironcore.dev/v1alpha1';
const CLASS = 'machineclass-sample';
const ROOT = path.join(import.meta.dirname, '../..');

let plane: TestServer;
let api: Api;
/** Of the process, and of Machines: two, because pools are shared by all namespaces. */
let ns: TestNamespace;
let other: TestNamespace;
let session: OperatorSession;
const sessions: OperatorSession[] = [];
const requests: RequestRecord[] = [];

beforeAll(async () => {
  // A real one is without kinds of ours: what is for IronCore is all that runs here.
  plane = (await simulatedServer()) ?? (await startControlPlane());
  const { connection } = plane;
  api = connection.api();
  await applyManifests(api, readManifests(path.join(ROOT, 'crds/ironcore')));
  ns = await namespace(connection);
  other = await namespace(connection);
  for (const role of ['ironcore-scheduler', 'ironcore-lifecycle', 'ironcore-pools', 'ironcore-machines'] as const)
    await grant(api, role, ns.name);
  session = await start();
});

afterAll(async () => {
  await session[Symbol.asyncDispose]();
  await api.close();
  await plane[Symbol.asyncDispose]();
});

type Hooks = NonNullable<Parameters<typeof OperatorSession.start>[0]['hooks']>;

async function start(hooks: Hooks = {}, flags: Readonly<Record<string, string>> = {}): Promise<OperatorSession> {
  const started = await OperatorSession.start({
    connection: plane.connection,
    subject: { user: 'machinist' },
    namespace: ns.name,
    controllers: 'ironcore',
    flags: {
      'leader-elect': 'true',
      // A process that cannot renew its Lease in time ends, and nobody serves its pools then: the host may stand still for seconds.
      'leader-elect-lease-duration': '10m',
      'leader-elect-renew-deadline': '9m',
      'leader-elect-retry-period': '500ms',
      ...flags,
    },
    hooks: { leasesInMainThread: true, ...hooks },
  });
  sessions.push(started);
  return started;
}

/** The process dies. It does not give back its Leases, for which the next one would wait until they have run out. */
async function die(): Promise<void> {
  await session[Symbol.asyncDispose]();
  await api.send('DELETE', `/apis/coordination.k8s.io/v1/namespaces/${ns.name}/leases`);
}

interface PoolOptions {
  readonly places: number;
  readonly ready?: 'True' | 'False';
  readonly taints?: readonly IronCoreTaint[];
  readonly labels?: Readonly<Record<string, string>>;
}

async function createPool(
  name: string,
  { places, ready = 'True', taints = [], labels = {} }: PoolOptions,
): Promise<void> {
  const collection = `${GROUP}/machinepools`;
  await api.send('POST', collection, {
    apiVersion: 'compute.ironcore.dev/v1alpha1',
    kind: 'MachinePool',
    metadata: { name, labels },
    spec: { providerID: `test://${name}`, taints },
  });
  const conditions = [{ type: 'Ready', status: ready, reason: 'Test', message: '' }];
  const capacity = { [`class/machine.${CLASS}`]: String(places) };
  await api.send('PATCH', `${collection}/${name}/status`, { status: { conditions, capacity } });
}

async function createClass(): Promise<void> {
  await api.send('POST', `${GROUP}/machineclasses`, {
    apiVersion: 'compute.ironcore.dev/v1alpha1',
    kind: 'MachineClass',
    metadata: { name: CLASS },
    capabilities: { cpu: '1', memory: '1Gi' },
  });
}

async function removePools(...names: readonly string[]): Promise<void> {
  for (const name of names) await api.send('DELETE', `${GROUP}/machinepools/${name}`);
}

async function createMachines(
  names: readonly string[],
  spec: Partial<IronCoreMachineSpec> = {},
  place = ns,
): Promise<void> {
  await Promise.all(
    names.map((name) =>
      api.send('POST', `${GROUP}/namespaces/${place.name}/machines`, {
        apiVersion: 'compute.ironcore.dev/v1alpha1',
        kind: 'Machine',
        metadata: { name },
        spec: { machineClassRef: { name: CLASS }, ...spec },
      }),
    ),
  );
}

async function machines(): Promise<readonly IronCoreMachine[]> {
  return (await api.send<List<IronCoreMachine>>('GET', `${GROUP}/machines`)).items;
}

/** Removes all Machines, and waits until the scheduler knows it. */
async function removeMachines(): Promise<void> {
  for (const { name } of [ns, other]) await api.send('DELETE', `${GROUP}/namespaces/${name}/machines`);
  await eventually(() => session.caches.of(IRONCORE_KINDS).ironCoreMachines.list().length === 0, {
    describe: 'the Machines to be gone',
  });
}

/** How many Machines each pool has; those under `waits` say so. */
function counted(all: readonly IronCoreMachine[]): Record<string, number> {
  const saysSo = ({ status }: IronCoreMachine): string =>
    status?.conditions?.some(({ type, status: is }) => type === 'Scheduled' && is === 'False') ? 'waits' : 'silent';
  const grouped = Object.groupBy(all, (one) => one.spec.machinePoolRef?.name ?? saysSo(one));
  return Object.fromEntries(Object.entries(grouped).map(([where, some]) => [where, some?.length ?? 0]));
}

async function settle(want: Record<string, number>): Promise<void> {
  let seen: Record<string, number> = {};
  const describe = (): string => JSON.stringify(seen);
  await eventually(
    async () => {
      seen = counted(await machines());
      expect(seen).toEqual(want);
    },
    { describe },
  );
}

async function conditionOf(name: string): Promise<object | undefined> {
  const all = await machines();
  const found = all.find(({ metadata }) => metadata.name === name);
  return found?.status?.conditions?.find(({ type }) => type === 'Scheduled');
}

async function outOfCapacity(): Promise<readonly Event[]> {
  const { items } = await api.send<List<Event>>('GET', `/api/v1/namespaces/${other.name}/events`);
  return items.filter(({ reason }) => reason === 'OutOfCapacity');
}

// promise: machines-ironcore/machine-waits-says-why
// promise: ironcore/placing-machines/unassigned-machines-pool-scheduled
test('a Machine without a pool says why it waits, and goes to the first that comes', async () => {
  await createMachines(['early'], {}, other);

  await eventually(async () =>
    expect(await conditionOf('early')).toMatchObject({
      status: 'False',
      reason: 'OutOfCapacity',
      message: 'There is no MachinePool',
    }),
  );
  await eventually(async () => {
    expect(await outOfCapacity()).toMatchObject([
      { type: 'Warning', message: 'There is no MachinePool', involvedObject: { name: 'early' } },
    ]);
  });
  await createPool('unready', { places: 5, ready: 'False' });
  await eventually(async () =>
    expect(await conditionOf('early')).toMatchObject({ message: 'No MachinePool is suitable: 1 not ready' }),
  );
  await removePools('unready');
  // Said again, it is the same Event.
  await eventually(async () =>
    expect(new Set((await outOfCapacity()).map(({ count }) => count))).toEqual(new Set([1, 2])),
  );
  await createPool('a', { places: 1 });
  await settle({ a: 1 });
  await eventually(async () =>
    expect(await conditionOf('early')).toMatchObject({ status: 'True', reason: 'Placed', message: 'MachinePool a' }),
  );
});

// promise: ironcore/placing-machines/choice-pools-2-5
test('of pools with 2, 5 and 5 places, the last not ready, ten Machines take 2 and 5, and 3 wait', async () => {
  await removeMachines();
  await removePools('a');
  await createPool('two', { places: 2 });
  await createPool('five', { places: 5 });
  await createPool('unready', { places: 5, ready: 'False' });

  await createMachines(Array.from({ length: 10 }, (_, i) => `m-${i}`));

  await settle({ two: 2, five: 5, waits: 3 });
  await api.send('DELETE', `${GROUP}/namespaces/${ns.name}/machines/${(await machines())[0]?.metadata.name}`);
  await eventually(async () => expect(counted(await machines())).toMatchObject({ two: 2, five: 5 }));
});

// promise: ironcore/placing-machines/server
test('taints and labels keep Machines out that do not tolerate or ask for them', async () => {
  await removeMachines();
  await removePools('two', 'five', 'unready');
  const taint = { key: 'gpu', value: 'yes', effect: 'NoSchedule' };
  await createPool('tainted', { places: 9, taints: [taint] });
  await createPool('zoned', { places: 9, labels: { zone: 'z1' } });

  await createMachines(['plain']);
  await createMachines(['tolerant'], { tolerations: [{ key: 'gpu', operator: 'Exists' }], machinePoolSelector: {} });
  await createMachines(['elsewhere'], { machinePoolSelector: { zone: 'z2' } });

  await settle({ zoned: 1, tainted: 1, waits: 1 });
  await eventually(async () =>
    expect(await conditionOf('elsewhere')).toMatchObject({
      message: 'No MachinePool is suitable: 1 tainted, 1 without the labels of machinePoolSelector',
    }),
  );
  await removePools('tainted', 'zoned');
});

// promise: machines-ironcore/more-machines-placed-pool
// promise: ironcore/placing-machines/burst-50-once-20
// promise: ironcore/placing-machines/list-same-burst
test('of 50 Machines at once exactly 20 get the 20 places, also when the process dies in the middle, and again', async () => {
  await removeMachines();
  const names = Array.from({ length: 50 }, (_, i) => `b-${i}`);
  await createMachines(names.slice(0, 25));
  await createMachines(names.slice(25), {}, other);
  await settle({ waits: 50 });
  await die();
  await createPool('eleven', { places: 11 });
  await createPool('nine', { places: 9 });
  // What is on its way when it dies arrives, or does not. Until the answer to one of them had come, all others could be.
  const crash = new CrashPoint(8, 'before');
  session = await start({ intercept: crash.intercept });
  await crash.died;
  await die();
  expect(counted(await machines())).not.toMatchObject({ eleven: 11, nine: 9 });

  session = await start();
  await settle({ eleven: 11, nine: 9, waits: 30 });
  await removeMachines();
  const lists = session.count('list', 'machines');
  await createMachines(names);
  await settle({ eleven: 11, nine: 9, waits: 30 });
  expect(session.count('list', 'machines')).toBe(lists);
});

// promise: machines-ironcore/beside-scheduler-machine-gets
test('beside another scheduler each Machine gets one pool, none more than it has places, and nobody writes any more', async () => {
  await removeMachines();
  await using scheduler = OtherScheduler.start(api);
  const versions = async () => (await machines()).map(({ metadata }) => metadata.resourceVersion);

  for (let burst = 0; burst < 4; burst++) {
    await createMachines(Array.from({ length: 5 }, (_, i) => `both-${burst}-${i}`));
  }

  await settle({ eleven: 11, nine: 9 });
  const before = await versions();
  const { rounds } = scheduler;
  await eventually(() => scheduler.rounds > rounds + 10);
  expect(await versions()).toEqual(before);
});

// promise: ironcore/pools-classes/eviction-machines-tolerate-taint
test('a taint NoExecute drives out Machines that do not tolerate it, and no others', async () => {
  await removeMachines();
  await removePools('eleven', 'nine');
  await createPool('a', { places: 9 });
  await createMachines(['plain']);
  await createMachines(['tolerant'], { tolerations: [{ key: 'broken', operator: 'Exists' }] });
  await settle({ a: 2 });

  const taints = [{ key: 'broken', effect: 'NoExecute' }];
  await api.send('PATCH', `${GROUP}/machinepools/a`, { spec: { taints } });

  await settle({ a: 1 });
  expect((await machines()).map(({ metadata }) => metadata.name)).toEqual(['tolerant']);
  await eventually(async () => {
    const { items } = await api.send<List<Event>>('GET', `/api/v1/namespaces/${ns.name}/events`);
    expect(items.filter(({ reason }) => reason === 'Evicted')).toMatchObject([
      {
        involvedObject: { name: 'plain' },
        message: expect.stringContaining('MachinePool a: does not tolerate taint broken'),
      },
    ]);
  });
});

// promise: ironcore/pools-classes/class-use-stays-last
test('a class stays until its last Machine is gone', async () => {
  const one = `${GROUP}/machineclasses/${CLASS}`;
  const finalizers = async () => {
    const { status, body } = await api.request(one);
    return status === 404 ? undefined : ((body as IronCoreMachine).metadata.finalizers ?? []);
  };
  await createClass();
  await eventually(async () => expect(await finalizers()).toEqual(['compute.ironcore.dev/machineclass']));
  await api.send('DELETE', one);
  await eventually(async () => {
    const { items } = await api.send<List<Event>>('GET', '/api/v1/namespaces/default/events');
    expect(items.filter(({ reason }) => reason === 'InUse')).toMatchObject([
      { involvedObject: { name: CLASS }, message: `Its deletion waits for Machines: ${ns.name}/tolerant` },
    ]);
  });
  expect(await finalizers()).toEqual(['compute.ironcore.dev/machineclass']);

  await removeMachines();

  await eventually(async () => expect(await finalizers()).toBeUndefined());
});

// promise: machines-ironcore/nothing-placed-pool-nobody
// promise: ironcore/pools-classes/nothing-placed-machines-kept
test('a pool that nobody looks after is unknown: nothing is placed there, and what is there stays', async () => {
  await removePools('a');
  await createPool('silent', { places: 9 });
  await createMachines(['before']);
  await settle({ silent: 1 });
  const { connection } = plane;
  await using client = new KubeSession(connection, { transport: { endpoint: await asMachinist(connection) } });
  const clock = new FakeClock();
  const { ironCorePools: pools, poolLeases } = session.caches.of(IRONCORE_KINDS);
  const health = new PoolHealth({ pools, poolLeases, reader: client.reader, writer: client.writer, clock });
  const lease = `/apis/coordination.k8s.io/v1/namespaces/${POOL_LEASE_NAMESPACE}/leases`;
  const spec = { holderIdentity: 'x', leaseDurationSeconds: 40, renewTime: '2026-01-01T00:00:00.000000Z' };
  await api.send('POST', lease, { metadata: { name: 'silent' }, spec });
  await eventually(() => poolLeases.get(`${POOL_LEASE_NAMESPACE}/silent`) !== undefined);

  await health.reconcile('silent', client.signal);
  clock.advance(50_000);
  await health.reconcile('silent', client.signal);

  const { status } = await api.send<IronCoreMachinePool>('GET', `${GROUP}/machinepools/silent`);
  expect(status?.conditions).toMatchObject([{ status: 'Unknown', reason: 'MachinePoolStatusUnknown' }]);
  await createMachines(['after']);
  await settle({ silent: 1, waits: 1 });
  requests.push(...client.requests);
});

// promise: machines-ironcore/pool-places-runtime-seconds
// promise: ironcore/pools-classes/pool-capacity-quantity-changes
// promise: ironcore/pools-classes/pool-health-runtime-killed
test('a pool that is served has the places that its runtime has, and none while that does not answer', async () => {
  await removeMachines();
  await removePools('silent');
  await createClass();
  await die();
  await using runtime = await IriRuntime.start({ classes: { [CLASS]: 2 } });
  session = await start({}, { 'ironcore-pool': `served=${runtime.address}` });
  const read = () => api.send<IronCoreMachinePool>('GET', `${GROUP}/machinepools/served`);
  const shows = async (want: object): Promise<void> => {
    await eventually(async () => expect(await read()).toMatchObject(want));
  };
  const count = `class/machine.${CLASS}`;
  await shows({ status: { state: 'Ready', capacity: { [count]: '2' }, availableMachineClasses: [{ name: CLASS }] } });
  const preflight = await Program.run('machinist', [
    'preflight',
    '--controllers=ironcore',
    '--as=machinist',
    `--target-kubeconfig=${plane.connection.kubeconfig}`,
    `--namespace=${ns.name}`,
    `--ironcore-pool=served=${runtime.address}`,
  ]);
  expect(preflight).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`OK    runtimes     served: sim 1.0.0, places: 2 ${CLASS}\n`),
  });
  // What the administrator says of it stays.
  const taints = [{ key: 'k', effect: 'NoSchedule' }];
  await api.send('PATCH', `${GROUP}/machinepools/served`, { metadata: { labels: { zone: 'z1' } }, spec: { taints } });
  const spec = { tolerations: [{ operator: 'Exists' }], machinePoolSelector: { zone: 'z1' } };
  await createMachines(['m-1', 'm-2', 'm-3'], spec);
  await settle({ served: 2, waits: 1 });
  await shows({ status: { allocatable: { [count]: '0' } } });

  runtime.setQuantity(CLASS, 4);

  await settle({ served: 3 });
  await shows({ status: { capacity: { [count]: '4' }, allocatable: { [count]: '1' } }, spec: { taints } });
  await runtime.kill();
  await shows({ status: { state: 'Offline', conditions: [{ status: 'False', reason: 'RuntimeUnreachable' }] } });
  await createMachines(['m-4'], spec);
  await settle({ served: 3, waits: 1 });
  const lease = await api.send<Lease>(
    'GET',
    `/apis/coordination.k8s.io/v1/namespaces/${POOL_LEASE_NAMESPACE}/leases/served`,
  );
  expect(lease.spec).toMatchObject({ leaseDurationSeconds: 40, holderIdentity: expect.stringMatching(/^served_/) });
  expect(lease.spec?.renewTime).not.toBe(lease.spec?.acquireTime);
});

// promise: machines-ironcore/ironcore-uses-permission-roles
test('uses every verb that its roles grant, and is refused nothing', () => {
  const roles = readManifests(path.join(ROOT, 'deploy/rbac')).filter(
    ({ kind, metadata }) =>
      kind.endsWith('Role') && /^machinist-ironcore-(scheduler|lifecycle|pools)$/.test(metadata.name),
  );
  const rules = roles.flatMap((role) => (role as unknown as { rules: Rule[] }).rules);
  const granted = rules.flatMap(({ resources, verbs }) =>
    resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
  );
  requests.push(...sessions.flatMap((one) => one.requests));
  const used = new Set(requests.map(({ verb, resource }) => `${verb} ${resource}`));

  expect(roles).toHaveLength(7);
  expect(granted.filter((one) => !used.has(one))).toEqual([]);
  expect(requests.filter(({ code }) => code === 401 || code === 403)).toEqual([]);
});

interface Rule {
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}
