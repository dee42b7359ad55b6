import { beforeEach, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { MemoryClient } from '../../../../test/memory-client.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { IronCoreMachine } from '../api/machine.ts';
import type { IronCoreMachineClass } from '../api/machine-class.ts';
import type { IronCoreMachinePool } from '../api/machine-pool.ts';
import { IRONCORE_MACHINE_INDEXES } from './indexes.ts';
import type { PoolRuntime } from '../runtime/gated-runtime.ts';
import { RuntimeError } from '../runtime/error.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { ironCoreMachinePools } from '../api/resources.ts';
import { ironCoreMetrics } from './metrics.ts';
import { IronCorePoolController } from './pool-controller.ts';
import { ServedPools } from './served-pools.ts';

const never = new AbortController().signal;
const meta = (name: string, resourceVersion = '1') => ({
  name,
  uid: name,
  resourceVersion,
  creationTimestamp: '2026-01-01T00:00:00Z',
});
const machineClass = (cpu: number, resourceVersion = '1'): IronCoreMachineClass => ({
  metadata: meta('c', resourceVersion),
  capabilities: { cpu },
});
const machine = (pool: string | undefined, resourceVersion: string, state = ''): IronCoreMachine => ({
  metadata: { ...meta('m', resourceVersion), namespace: 'ns' },
  spec: { machineClassRef: { name: 'c' }, ...(pool !== undefined && { machinePoolRef: { name: pool } }) },
  status: { state },
});

let pools: MemoryInformer<IronCoreMachinePool>;
let classes: MemoryInformer<IronCoreMachineClass>;
let machines: MemoryInformer<IronCoreMachine>;
let client: MemoryClient;
let clock: FakeClock;
let controller: IronCorePoolController;
/** Pools whose runtime was asked, and whose Lease was renewed. */
let asked: number;
let renewed: string[];
let uids: (string | undefined)[];
let places: number;
let failure: unknown;
let runtimes: Map<string, Pick<PoolRuntime, 'classes' | 'address'>>;
let rival: string | undefined;
let providerIDs: Map<string, string>;
let leaseFailure: unknown;
let other: string | undefined;
let served: ServedPools;
let events: string[];

beforeEach(() => {
  pools = new MemoryInformer();
  classes = new MemoryInformer([machineClass(1)]);
  machines = new MemoryInformer<IronCoreMachine>([], IRONCORE_MACHINE_INDEXES);
  client = new MemoryClient();
  clock = new FakeClock();
  [asked, renewed, places, failure, leaseFailure, rival] = [0, [], 2, undefined, undefined, undefined];
  const runtime = {
    address: 'unix:///p.sock',
    classes: async () => {
      asked += 1;
      if (failure !== undefined) throw failure;
      return [{ name: 'c', resources: {}, quantity: places }];
    },
  };
  uids = [];
  const renew = async (pool: string, uid: string | undefined): Promise<string | undefined> => {
    uids.push(uid);
    if (leaseFailure !== undefined) throw leaseFailure;
    if (other === undefined) renewed.push(pool);
    return other;
  };
  served = new ServedPools();
  events = [];
  other = undefined;
  const poolRecorder = {
    event: ({ reason, message }: { reason: string; message: string }) => void events.push(`${reason}: ${message}`),
  };
  const metrics = ironCoreMetrics(new Registry());
  runtimes = new Map([['p', runtime]]);
  providerIDs = new Map();
  const told = { served, poolRecorder, metrics };
  controller = new IronCorePoolController({
    ...told,
    runtimes,
    providerIDs,
    pools,
    classes,
    machines,
    leases: { renew },
    rivals: { whyNot: () => rival },
    writer: client,
    clock,
  });
});

const pass = () => controller.reconcile('p', never);

function show(status: IronCoreMachinePool['status'] = {}, resourceVersion = '1', metadata: object = {}): void {
  const one = { metadata: { ...meta('p', resourceVersion), ...metadata }, status };
  pools.put(one);
  client.put(ironCoreMachinePools, one);
}

const statuses = () => client.writes.map(({ body }) => (body as IronCoreMachinePool).status);

test('a pool that is not there is made, once: whoever takes it away wants it away', async () => {
  expect(await pass()).toMatchObject({ kind: 'requeue', afterMs: 0 });
  expect(client.writes).toMatchObject([{ verb: 'create', what: 'machinepools/p', body: { metadata: { name: 'p' } } }]);
  show();
  await pass();
  pools.remove('p');

  expect(await pass()).toMatchObject({ kind: 'stop' });
  expect(client.writes.filter(({ verb }) => verb === 'create')).toHaveLength(1);
});

test('one that is made has the provider ID of the flag', async () => {
  providerIDs.set('p', 'sim://p');

  await pass();

  expect(client.writes).toMatchObject([{ verb: 'create', body: { spec: { providerID: 'sim://p' } } }]);
});

test.each([
  { has: 'sim://p', told: [] },
  {
    has: undefined,
    told: [expect.stringMatching(/^ProviderIDDiffers: spec\.providerID is not set.* set it to sim:\/\/p/)],
  },
  {
    has: 'other',
    told: [expect.stringMatching(/^ProviderIDDiffers: spec\.providerID is other and cannot be changed/)],
  },
])('the provider ID of one that is there stays $has, and is told once where it differs', async ({ has, told }) => {
  providerIDs.set('p', 'sim://p');
  pools.put({ metadata: meta('p'), spec: has === undefined ? {} : { providerID: has } });

  await pass();
  clock.advance(10_000);
  await pass();

  expect(events).toEqual(told);
});

test('one that is there is not made, and its status says what the runtime says', async () => {
  show();

  expect(await pass()).toMatchObject({ kind: 'requeue', afterMs: 10_000 });

  expect(client.writes).toMatchObject([{ verb: 'patch', what: 'machinepools/p/status', resourceVersion: '1' }]);
  expect(statuses()).toMatchObject([{ state: 'Ready', capacity: { 'class/machine.c': '2' } }]);
});

// promise: ironcore/pools-classes/10
test('nothing is written while nothing changes but the Lease; every 10 s the runtime is asked', async () => {
  show();
  await pass();
  const [status] = statuses();
  show(status, '2');
  await pass();
  clock.advance(4_000);
  expect(await pass()).toMatchObject({ afterMs: 6_000 });
  expect([asked, renewed, client.writes.length]).toEqual([1, ['p'], 1]);
  clock.advance(6_000);
  places = 4;

  await pass();

  expect([asked, renewed]).toEqual([2, ['p', 'p']]);
  // Of what is told nothing but the change.
  expect(statuses()[1]).toEqual({ capacity: { 'class/machine.c': '4' }, allocatable: { 'class/machine.c': '4' } });
});

test('a runtime that does not answer is told of, and the Lease is renewed all the same', async () => {
  show();
  failure = new RuntimeError('Status', 'Unavailable', 'no such socket', { isMutation: false });

  await pass();

  expect(renewed).toEqual(['p']);
  expect(statuses()).toMatchObject([
    { state: 'Offline', conditions: [{ status: 'False', message: 'no such socket' }] },
  ]);
});

test('a heartbeat whose Lease could not be renewed is made again', async () => {
  show();
  leaseFailure = new Error('no');
  await expect(pass()).rejects.toBe(leaseFailure);
  leaseFailure = undefined;

  await pass();

  expect([asked, renewed]).toEqual([1, ['p']]);
});

test('a Lease that may not be renewed is told, with what helps, and nothing is done for the pool', async () => {
  show();
  leaseFailure = new ApiError(404, 'NotFound', 'namespaces "x" not found');

  await expect(pass()).rejects.toBe(leaseFailure);

  expect(events).toEqual([
    expect.stringMatching(/^LeaseNotRenewed: .*namespaces "x" not found\. .*ironcore-pools\.yaml$/),
  ]);
  expect(served.has('p')).toBe(false);
});

test.each([
  { forMs: 39_999, isServed: true },
  { forMs: 40_000, isServed: false },
])('a pool whose Lease could not be renewed for $forMs ms is served: $isServed', async ({ forMs, isServed }) => {
  show();
  await pass();
  leaseFailure = new ApiError(403, 'Forbidden', 'no');
  clock.advance(forMs);

  await expect(pass()).rejects.toBe(leaseFailure);

  expect(served.has('p')).toBe(isServed);
  leaseFailure = undefined;
  await pass();
  expect(served.has('p')).toBe(true);
});

test('of a pool that goes nothing is said', async () => {
  show({}, '1', { deletionTimestamp: '2026-01-01T00:00:00Z' });

  expect(await pass()).toMatchObject({ kind: 'stop' });
  expect([client.writes, asked, renewed]).toEqual([[], 0, []]);
});

test('a pool that goes is served while Machines are left in it', async () => {
  show({}, '1', { deletionTimestamp: '2026-01-01T00:00:00Z' });
  machines.put(machine('p', '2'));

  expect(await pass()).toMatchObject({ kind: 'requeue', afterMs: 10_000 });

  expect([client.writes, asked, renewed, served.has('p')]).toEqual([[], 0, ['p'], true]);
});

describe('a pool is looked at', () => {
  test.each<{ when: string; happens: () => void; woken: readonly string[] }>([
    { when: 'when it changes', happens: () => show({}, '9'), woken: ['p'] },
    { when: 'not when another one changes', happens: () => pools.put({ metadata: meta('q') }), woken: [] },
    { when: 'when a class changes', happens: () => classes.put(machineClass(2, '2')), woken: ['p'] },
    { when: 'not when a class only gets a finalizer', happens: () => classes.put(machineClass(1, '2')), woken: [] },
    { when: 'when a Machine comes', happens: () => machines.put(machine('p', '2')), woken: ['p'] },
    { when: 'not when one waits', happens: () => machines.put(machine(undefined, '2')), woken: [] },
    { when: 'not when one comes elsewhere', happens: () => machines.put(machine('q', '2')), woken: [] },
  ])('$when', ({ happens, woken }) => {
    const keys: string[] = [];
    controller.watch({ add: (key) => void keys.push(key), addAfter: () => undefined });
    expect(keys).toEqual(['p']);
    keys.length = 0;

    happens();

    expect(keys).toEqual(woken);
  });

  test('when a Machine in it ends, and not when one only says something', () => {
    machines.put(machine('p', '2'));
    const keys: string[] = [];
    controller.watch({ add: (key) => void keys.push(key), addAfter: () => undefined });
    keys.length = 0;

    machines.put(machine('p', '3', 'Running'));
    expect(keys).toEqual([]);
    machines.remove('ns/m');
    expect(keys).toEqual(['p']);
  });
});

test('a pool that somebody else serves is left to them, and told, until they have ended', async () => {
  show();
  other = 'p_machinepoollet';
  const begun: string[] = [];
  served.onBegin((pool) => begun.push(pool));

  expect(await pass()).toMatchObject({ kind: 'requeue', afterMs: 10_000 });
  expect([asked, client.writes, served.has('p')]).toEqual([0, [], false]);
  expect(events).toEqual([expect.stringMatching(/^ServedByAnother: .* is renewed by p_machinepoollet, /)]);

  other = undefined;
  clock.advance(10_000);
  await pass();
  expect([asked, statuses().length, served.has('p'), begun]).toEqual([1, 1, true, ['p']]);

  other = 'p_again';
  clock.advance(10_000);
  await pass();
  expect([asked, served.has('p'), events.length]).toEqual([1, false, 2]);
});

test('the Lease of a pool that was made again is renewed for it at once', async () => {
  show();
  await pass();
  show({}, '2', { uid: 'made-again' });

  await pass();
  await pass();

  expect(uids).toEqual(['p', 'made-again']);
});

test('a pool whose machines another cluster claims is not ready, with the words of who has found that, until it does not any more', async () => {
  show();
  rival = 'claimed by another';
  await pass();
  expect(statuses()).toMatchObject([
    { state: 'Error', conditions: [{ type: 'Ready', status: 'False', reason: 'ClaimedByAnother', message: rival }] },
  ]);

  rival = undefined;
  show((await client.get(ironCoreMachinePools, { name: 'p' })).status, '2');
  await pass();

  expect(statuses().at(-1)).toMatchObject({ state: 'Ready', conditions: [{ type: 'Ready', status: 'True' }] });
});

test('two pools with one runtime are told of it, each once', async () => {
  const runtime = runtimes.get('p');
  if (runtime === undefined) throw new Error('there is one');
  show();
  await pass();
  expect(events).toEqual([]);

  runtimes.set('q', runtime);
  runtimes.set('r', { ...runtime, address: 'unix:///r.sock' });
  clock.advance(10_000);
  await pass();
  clock.advance(10_000);
  await pass();

  expect(events).toEqual([expect.stringMatching(/^SharedRuntime: .* unix:\/\/\/p\.sock to MachinePools p, q: /)]);
});

test('what IronCore’s own API server adds to a status is no reason to write it again', async () => {
  show();
  await pass();
  const [status] = statuses();
  const conditions = status?.conditions?.map((one) => ({ ...one, lastUpdateTime: null }));
  show({ ...status, conditions: conditions as never, daemonEndpoints: { machinepoolletEndpoint: { port: 0 } } }, '2');
  clock.advance(10_000);

  await pass();

  expect(statuses()).toHaveLength(1);
});
