import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { MachineStore } from '../../../ironcore-runtime/sim/store.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { IronCoreMachine } from '../../../apis/ironcore/machine.ts';
import type { IronCoreMachinePool } from '../../../apis/ironcore/machine-pool.ts';
import { RuntimeError } from '../../../ironcore-runtime/error.ts';
import type { PoolRuntime } from '../../../ironcore-runtime/gated-runtime.ts';
import { Machine, MachineState } from '../../../ironcore-runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import { ApiError } from '../../../kube/errors.ts';
import type { Reader } from '../../../kube/client.ts';
import { silentLogger } from '../../../log/logger.ts';
import { Relist } from './relist.ts';

const { signal } = new AbortController();
const meta = (name: string, uid: string) => ({
  name,
  namespace: 'ns',
  uid,
  resourceVersion: '1',
  creationTimestamp: '2026-01-01T00:00:00Z',
});
const pool: IronCoreMachinePool = { metadata: { ...meta('p', 'pool-uid'), namespace: '' } };

function machineOf(name: string, uid = `uid-${name}`): IronCoreMachine {
  const machinePoolRef = { name: 'p' };
  return { metadata: meta(name, uid), spec: { machineClassRef: { name: 'c' }, machinePoolRef } };
}

function world(cached: readonly IronCoreMachine[], live: readonly IronCoreMachine[] = cached) {
  const clock = new FakeClock();
  const store = new MachineStore();
  store.quantities.set('c', 100n);
  const woken: string[] = [];
  const told: string[] = [];
  const deleted: string[] = [];
  const events: object[] = [];
  const state = { isAway: false, isMute: false };
  const runtime = {
    machines: async () => {
      if (state.isAway) throw new RuntimeError('ListMachines', 'Unavailable', 'no such socket', { isMutation: false });
      return structuredClone(store.all());
    },
    events: async () => {
      if (state.isMute) throw new RuntimeError('ListEvents', 'Internal', 'no', { isMutation: false });
      return events;
    },
    delete: async (_of: string, id: string) => {
      deleted.push(id);
      store.delete(id);
    },
  } as unknown as PoolRuntime;
  const reader = {
    get: async (_resource: unknown, { name }: { name: string }) => {
      const found = live.find(({ metadata }) => metadata.name === name);
      if (found === undefined) throw new ApiError(404, 'NotFound', 'there is none');
      return found;
    },
  } as unknown as Reader;
  const machines = new MemoryInformer([...cached], { pool: () => ['p'] });
  const relist = new Relist({
    runtimes: new Map([['p', runtime]]),
    machines,
    pools: new MemoryInformer([pool]),
    reader,
    recorder: { event: ({ object, reason }) => void told.push(`${object.metadata.name} ${reason}`) },
    clock,
    log: silentLogger,
    wake: (key) => void woken.push(key),
  });
  const look = async (): Promise<{ readonly afterMs: number; readonly woken: readonly string[] }> => {
    woken.length = 0;
    const result = await relist.reconcile('p', signal);
    return { afterMs: result.kind === 'requeue' ? result.afterMs : -1, woken: [...woken] };
  };
  const add = (name: string, uid = `uid-${name}`, poolUID = 'pool-uid'): string => {
    const labels = {
      'machinepoollet.ironcore.dev/machine-uid': uid,
      'machinepoollet.ironcore.dev/machine-namespace': 'ns',
      'machinepoollet.ironcore.dev/machine-name': name,
      'downward-api.machinepoollet.ironcore.dev/machinepool-uid': poolUID,
    };
    return store.create(Machine.fromPartial({ metadata: { labels }, spec: { class: 'c' } })).metadata.id;
  };
  return { relist, clock, store, look, add, told, deleted, events, state };
}

describe('all machines of a runtime', () => {
  test('are looked at often while something is on its way, and those that have changed are woken', async () => {
    const { store, look, add } = world([machineOf('a'), machineOf('b')]);
    const a = add('a');
    add('b');

    expect(await look()).toEqual({ afterMs: 30_000, woken: ['ns/a', 'ns/b'] });
    expect(await look()).toEqual({ afterMs: 30_000, woken: [] });
    store.setState(a, MachineState.MACHINE_PENDING);
    expect(await look()).toEqual({ afterMs: 1_000, woken: ['ns/a'] });
    store.setState(a, MachineState.MACHINE_RUNNING);
    expect(await look()).toEqual({ afterMs: 30_000, woken: ['ns/a'] });
    store.forget(a);
    expect(await look()).toEqual({ afterMs: 30_000, woken: ['ns/a'] });
  });

  test('are all woken when the runtime answers again', async () => {
    const { look, add, state } = world([machineOf('a'), machineOf('b')]);
    add('a');
    await look();

    state.isAway = true;
    expect(await look()).toEqual({ afterMs: 5_000, woken: [] });
    state.isAway = false;

    expect(await look()).toEqual({ afterMs: 30_000, woken: ['ns/a', 'ns/b'] });
  });
});

describe('a machine without a Machine', () => {
  test('is deleted after ten seconds', async () => {
    const { clock, look, add, deleted } = world([]);
    const id = add('a');

    expect((await look()).afterMs).toBe(1_000);
    clock.advance(9_000);
    await look();
    expect(deleted).toEqual([]);
    clock.advance(1_000);
    await look();

    expect(deleted).toEqual([id]);
  });

  test.each([
    { what: 'whose Machine is there', cached: [machineOf('a')], live: [], added: {} },
    { what: 'whose Machine the cache does not know yet', cached: [], live: [machineOf('a')], added: {} },
    { what: 'of another cluster', cached: [], live: [], added: { poolUID: 'other' } },
  ])('stays: $what', async ({ cached, live, added }) => {
    const { clock, look, add, deleted } = world(cached, live);
    add('a', 'uid-a', added.poolUID);

    await look();
    clock.advance(20_000);
    await look();

    expect(deleted).toEqual([]);
  });

  test('stays after the API server was set back', async () => {
    const { clock, look, add, deleted, relist } = world([]);
    add('a');
    await look();
    clock.advance(20_000);

    relist.keepOwnerless();

    expect((await look()).afterMs).toBe(30_000);
    expect(deleted).toEqual([]);
  });

  test.each([
    { count: 5, want: 5 },
    { count: 6, want: 0 },
  ])('is deleted only with few others: of $count $want', async ({ count, want }) => {
    const { clock, look, add, deleted } = world([]);
    for (let n = 0; n < count; n++) add(`m-${n}`);

    await look();
    clock.advance(20_000);
    await look();

    expect(deleted).toHaveLength(want);
  });

  test('goes although another Machine has the name by now', async () => {
    const { clock, look, add, deleted } = world([machineOf('a', 'uid-new')]);
    const id = add('a', 'uid-old');

    await look();
    clock.advance(10_000);
    await look();

    expect(deleted).toEqual([id]);
  });
});

test('what a runtime tells of a machine is told once, of a Machine that is there', async () => {
  const { clock, look, add, told, events } = world([machineOf('a')]);
  const id = add('a');
  const spec = { reason: 'Full', message: 'm', type: 'Warning', eventTime: 5n };
  events.push({ spec: { ...spec, involvedObjectMeta: { id } } });
  events.push({ spec: { ...spec, involvedObjectMeta: { id: 'nobody' } } });

  await look();
  clock.advance(10_000);
  await look();

  expect(told).toEqual(['a Full']);
});

test('a runtime that cannot tell its events is looked at as before, and asked for them again', async () => {
  const { clock, look, add, told, events, state } = world([machineOf('a')]);
  const involvedObjectMeta = { id: add('a') };
  events.push({ spec: { reason: 'Full', message: 'm', type: 'Warning', eventTime: 5n, involvedObjectMeta } });
  state.isMute = true;
  expect((await look()).afterMs).toBe(30_000);

  state.isMute = false;
  clock.advance(10_000);
  await look();
  expect(told).toEqual(['a Full']);
});

test.each([
  { what: 'does not say of which Machine it is', name: '' },
  { what: 'is going already', name: 'gone' },
])('a machine without a Machine that $what is not deleted', async ({ name }) => {
  const { clock, store, look, add, deleted } = world([]);
  const id = add(name);
  const machine = store.all().find(({ metadata }) => metadata.id === id);
  if (name !== '') Object.assign(machine?.metadata ?? {}, { deletedAt: 5n });

  await look();
  clock.advance(10_000);
  await look();

  expect(deleted).toEqual([]);
});
