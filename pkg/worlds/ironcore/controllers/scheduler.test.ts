import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { IronCoreMachine } from '../api/machine.ts';
import type { IronCoreMachinePool, IronCoreMachinePoolStatus } from '../api/machine-pool.ts';
import { IRONCORE_MACHINE_INDEXES } from './indexes.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import type { Patch } from '../../../kube/client/patch.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { Scheduler } from './scheduler.ts';

const NOW = '2026-01-01T00:00:00Z';
const never = new AbortController().signal;

function machine(name: string, change: Partial<IronCoreMachine> = {}, resourceVersion = '1'): IronCoreMachine {
  return {
    metadata: { name, namespace: 'ns', uid: name, resourceVersion, creationTimestamp: NOW },
    spec: { machineClassRef: { name: 'c' } },
    ...change,
  };
}

function pool(name: string, places: number, status: IronCoreMachinePoolStatus = {}): IronCoreMachinePool {
  return {
    metadata: {
      name,
      uid: name,
      resourceVersion: `${name}-${places}-${JSON.stringify(status)}`,
      creationTimestamp: NOW,
    },
    status: {
      conditions: [{ type: 'Ready', status: 'True', reason: '', message: '' }],
      capacity: { 'class/machine.c': places },
      ...status,
    },
  };
}

const inPool = (name: string): Partial<IronCoreMachine> => ({
  spec: { machineClassRef: { name: 'c' }, machinePoolRef: { name } },
});

/** Caches, and an API server that answers when and as the test says. */
class World {
  readonly machines = new MemoryInformer<IronCoreMachine>([], IRONCORE_MACHINE_INDEXES);
  readonly pools = new MemoryInformer<IronCoreMachinePool>();
  readonly clock = new FakeClock();
  readonly woken: string[] = [];
  readonly events: string[] = [];
  readonly writes: { readonly name: string; readonly pool: string | undefined; readonly conditions: unknown }[] = [];
  /** What the next writes fail with, one each. */
  readonly failures: unknown[] = [];
  passesOverPools = 0;
  readonly scheduler: Scheduler;
  #version = 1;

  constructor() {
    const { machines, pools, clock } = this;
    const patch = async (_intent: string, _resource: unknown, ref: { name: string }, { body }: Patch) => {
      const { spec, status } = body as Partial<IronCoreMachine>;
      this.writes.push({ name: ref.name, pool: spec?.machinePoolRef?.name, conditions: status?.conditions });
      const failure = this.failures.shift();
      await new Promise((resolve) => setImmediate(resolve));
      if (failure !== undefined) throw failure;
      this.#apply(ref.name, { ...(spec && { spec }), ...(status && { status }) });
    };
    const counted = Object.assign(Object.create(pools) as typeof pools, {
      list: () => {
        this.passesOverPools += 1;
        return pools.list();
      },
      get: pools.get.bind(pools),
      onChange: pools.onChange.bind(pools),
    });
    const deps = {
      machines,
      pools: counted,
      clock,
      writer: { patch },
      recorder: {
        event: ({ object, reason, message }: { object: IronCoreMachine; reason: string; message: string }) =>
          this.events.push(`${object.metadata.name} ${reason}: ${message}`),
      },
    } as unknown as ConstructorParameters<typeof Scheduler>[0];
    this.scheduler = new Scheduler(deps);
    this.scheduler.watch({ add: (key) => void this.woken.push(key), addAfter: () => undefined });
  }

  pass(name: string): ReturnType<Scheduler['reconcile']> {
    return this.scheduler.reconcile(`ns/${name}`, never);
  }

  poolOf(name: string): string | undefined {
    return this.machines.get(`ns/${name}`)?.spec.machinePoolRef?.name;
  }

  /** What the watch shows after somebody has changed the Machine. */
  #apply(name: string, change: Partial<IronCoreMachine>): void {
    const before = this.machines.get(`ns/${name}`);
    if (before === undefined) return;
    const spec = { ...before.spec, ...change.spec };
    const resourceVersion = String((this.#version += 1));
    this.machines.put({ ...before, ...change, spec, metadata: { ...before.metadata, resourceVersion } });
  }

  touch(name: string): void {
    this.#apply(name, {});
  }
}

describe('however many passes write at once', () => {
  // promise: ironcore/placing-machines/pass-over-pools-1
  test('no more Machines are placed than there are places, each after one look at the pools', async () => {
    const world = new World();
    world.pools.put(pool('a', 12));
    world.pools.put(pool('b', 8));
    const names = Array.from({ length: 1_000 }, (_, i) => `m-${i}`);
    for (const name of names) world.machines.put(machine(name));

    await Promise.all(names.map((name) => world.pass(name)));

    const placed = Map.groupBy(names, (name) => world.poolOf(name) ?? 'waits');
    expect(new Map([...placed].map(([where, some]) => [where, some.length]))).toEqual(
      new Map([
        ['a', 12],
        ['b', 8],
        ['waits', 980],
      ]),
    );
    expect(world.passesOverPools).toBe(1_000);
    expect(new Set(world.events.map((one) => one.replace(/^\S+ /, '')))).toEqual(
      new Set(['OutOfCapacity: No MachinePool is suitable: 2 full']),
    );
  });

  test('Machines that are there already, with whatever pool, take their places', async () => {
    const world = new World();
    world.machines.put(machine('there', inPool('a')));
    world.pools.put(pool('a', 2));
    for (const name of ['m-1', 'm-2']) world.machines.put(machine(name));

    await Promise.all(['m-1', 'm-2'].map((name) => world.pass(name)));

    expect([world.poolOf('m-1'), world.poolOf('m-2')]).toEqual(['a', undefined]);
  });
});

describe('a pool that could not be written', () => {
  const lost = new ApiError(0, 'Unreachable', 'no answer');

  // promise: machines-ironcore/place-given-nobody-else
  test.each([
    { what: 'without an answer', err: lost },
    { what: 'late', err: new ApiError(0, 'DeadlineExceeded', 'late') },
    { what: 'after a conflict, which may be with an earlier attempt', err: new ApiError(409, 'Conflict', 'changed') },
    { what: 'cut off', err: new Error('aborted') },
  ])('$what keeps its place, and is written again as it was', async ({ err }) => {
    const world = new World();
    world.pools.put(pool('a', 1));
    world.machines.put(machine('m-1'));
    world.machines.put(machine('m-2'));
    world.failures.push(err);
    await expect(world.pass('m-1')).rejects.toBe(err);
    world.pools.put(pool('better', 9));
    world.pools.put(pool('b', 1));

    await world.pass('m-1');

    expect(world.writes.map(({ pool: to }) => to)).toEqual(['a', 'a']);
    world.pools.remove('better');
    await world.pass('m-2');
    expect(world.poolOf('m-2')).toBe('b');
  });

  test('is decided on anew when a later version of the Machine has none: it cannot be written any more', async () => {
    const world = new World();
    world.pools.put(pool('a', 1));
    world.machines.put(machine('m'));
    world.failures.push(lost);
    await expect(world.pass('m')).rejects.toBe(lost);
    world.pools.put(pool('better', 9));
    world.touch('m');

    await world.pass('m');

    expect(world.writes.map(({ pool: to }) => to)).toEqual(['a', 'better']);
    world.machines.put(machine('other'));
    world.pools.remove('better');
    await world.pass('other');
    expect(world.poolOf('other')).toBe('a');
  });

  test.each([
    { what: 'refused', err: new ApiError(422, 'Invalid', 'no'), throws: true },
    { what: 'of a Machine that is gone', err: new ApiError(404, 'NotFound', 'gone'), throws: false },
  ])('$what frees its place at once', async ({ err, throws }) => {
    const world = new World();
    world.pools.put(pool('a', 1));
    world.machines.put(machine('m-1'));
    world.machines.put(machine('m-2'));
    world.failures.push(err);

    const [ended] = await Promise.allSettled([world.pass('m-1')]);
    await world.pass('m-2');

    expect(ended.status).toBe(throws ? 'rejected' : 'fulfilled');
    expect(world.poolOf('m-2')).toBe('a');
  });
});

describe('a pool that was not written because the gate was closed', () => {
  const closed = new GateClosedError('outage', undefined, 'an outage');
  const changed = pool('a', 1, { conditions: [] });

  test('is decided on anew: it may have changed meanwhile', async () => {
    const world = new World();
    world.pools.put(pool('a', 1));
    world.machines.put(machine('m'));
    world.failures.push(closed);
    await expect(world.pass('m')).rejects.toBe(closed);
    world.pools.put(changed);
    world.pools.put(pool('b', 1));

    await world.pass('m');

    expect(world.writes.map(({ pool: to }) => to)).toEqual(['a', 'b']);
  });

  test('is written again as it was when an earlier write had no answer', async () => {
    const world = new World();
    const lost = new ApiError(0, 'Unreachable', 'no answer');
    world.pools.put(pool('a', 1));
    world.machines.put(machine('m'));
    for (const err of [lost, closed]) {
      world.failures.push(err);
      await expect(world.pass('m')).rejects.toBe(err);
    }
    world.pools.put(changed);
    world.pools.put(pool('b', 1));

    await world.pass('m');

    expect(world.writes.map(({ pool: to }) => to)).toEqual(['a', 'a', 'a']);
  });
});

describe('a Machine that waits', () => {
  const why = 'No MachinePool is suitable: 1 full';
  const said = (status: string, message: string, since = NOW) => ({
    type: 'Scheduled',
    status,
    reason: status === 'True' ? 'Placed' : 'OutOfCapacity',
    message,
    lastTransitionTime: since,
  });

  test('says why once, beside what others say, and is looked at again after a minute', async () => {
    const world = new World();
    const others = { type: 'Other', status: 'True', reason: '', message: '' } as const;
    world.pools.put(pool('a', 1));
    world.machines.put(machine('there', inPool('a')));
    world.machines.put(machine('m', { status: { conditions: [others] } }));

    expect(await world.pass('m')).toEqual({ kind: 'requeue', afterMs: 60_000, waitingFor: why });
    await world.pass('m');

    expect(world.writes).toEqual([{ name: 'm', pool: undefined, conditions: [others, said('False', why)] }]);
    expect(world.events).toEqual([`m OutOfCapacity: ${why}`]);
  });

  test('says so when the reasons change, and since when it waits, and where it is in the end', async () => {
    const world = new World();
    world.pools.put(pool('a', 0));
    world.machines.put(machine('m'));
    await world.pass('m');
    world.clock.advance(60_000);
    world.pools.put(pool('b', 0, { conditions: [] }));
    await world.pass('m');
    world.pools.put(pool('a', 1));
    await world.pass('m');
    await world.pass('m');
    await world.pass('m');

    expect(world.writes.map(({ pool: to, conditions }) => to ?? conditions)).toEqual([
      [said('False', 'No MachinePool is suitable: 1 without c')],
      [said('False', 'No MachinePool is suitable: 1 not ready, 1 without c')],
      'a',
      [said('True', 'MachinePool a', '2026-01-01T00:01:00Z')],
    ]);
    expect(world.events).toHaveLength(2);
  });
});

// promise: ironcore/placing-machines/pool-exist-told-helps
test('a Machine whose pool there is not says so once, and takes it back when that comes', async () => {
  const world = new World();
  world.machines.put(machine('m', inPool('late')));
  const message = 'MachinePool late does not exist: create it, or create another Machine';

  await world.pass('m');
  await world.pass('m');
  expect(world.events).toEqual([`m NoMachinePool: ${message}`]);
  world.woken.length = 0;
  world.pools.put(pool('late', 0));
  expect(world.woken).toEqual(['ns/m']);
  await world.pass('m');

  expect(world.writes).toMatchObject([
    { conditions: [{ type: 'Scheduled', status: 'False', reason: 'NoMachinePool', message }] },
    { conditions: [{ type: 'Scheduled', status: 'True', reason: 'Placed' }] },
  ]);
});

describe('nothing is written about a Machine', () => {
  test.each([
    { which: 'whose pool was given, full or not, and which says nothing', one: machine('m', inPool('a')) },
    {
      which: 'that is being deleted',
      one: machine('m', { metadata: { ...machine('m').metadata, deletionTimestamp: NOW } }),
    },
    { which: 'that is gone', one: machine('another') },
  ])('$which', async ({ one }) => {
    const world = new World();
    world.pools.put(pool('a', 0));
    world.machines.put(one);

    expect(await world.pass('m')).toEqual({ kind: 'stop' });
    expect(world.writes).toEqual([]);
  });
});

describe('Machines that wait are looked at', () => {
  const cases: readonly {
    readonly when: string;
    readonly happens: (world: World) => void;
    readonly woken: readonly string[];
  }[] = [
    { when: 'when a pool comes', happens: ({ pools }) => pools.put(pool('b', 1)), woken: ['ns/m-1', 'ns/m-2'] },
    { when: 'when a pool grows', happens: ({ pools }) => pools.put(pool('a', 2)), woken: ['ns/m-1', 'ns/m-2'] },
    {
      when: 'when a pool goes, with those that are in it',
      happens: ({ pools }) => pools.remove('a'),
      woken: ['ns/m-1', 'ns/m-2', 'ns/there'],
    },
    {
      when: 'when a pool begins to go',
      happens: ({ pools }) => {
        const one = pool('a', 1);
        pools.put({ ...one, metadata: { ...one.metadata, resourceVersion: '2', deletionTimestamp: NOW } });
      },
      woken: ['ns/m-1', 'ns/m-2'],
    },
    {
      when: 'when a pool is no longer ready',
      happens: ({ pools }) => pools.put(pool('a', 1, { conditions: [] })),
      woken: ['ns/m-1', 'ns/m-2'],
    },
    {
      when: 'not when a pool only says that it lives',
      happens: ({ pools }) =>
        pools.put(pool('a', 1, { conditions: [{ type: 'Ready', status: 'True', reason: 'now', message: '' }] })),
      woken: [],
    },
    {
      when: 'when a Machine of their class ends',
      happens: ({ machines }) => machines.remove('ns/there'),
      woken: ['ns/m-1'],
    },
    { when: 'not when one ends that had no place', happens: ({ machines }) => machines.remove('ns/m-1'), woken: [] },
    {
      when: 'not when one only says something',
      happens: ({ machines }) => machines.put(machine('m-1', { status: { state: 'Pending' } }, '2')),
      woken: [],
    },
    {
      when: 'when one begins to tolerate something',
      happens: ({ machines }) =>
        machines.put(
          machine('m-1', { spec: { machineClassRef: { name: 'c' }, tolerations: [{ operator: 'Exists' }] } }, '2'),
        ),
      woken: ['ns/m-1'],
    },
  ];
  // By itself and at once: none of these is put off.
  // promise: ironcore/placing-machines/pool-added-at-once
  test.each(cases)('$when', ({ happens, woken }) => {
    const world = new World();
    world.pools.put(pool('a', 1));
    world.machines.put(machine('there', inPool('a')));
    world.machines.put(machine('m-1'));
    world.machines.put(machine('m-2', { spec: { machineClassRef: { name: 'other' } } }));
    world.woken.length = 0;

    happens(world);

    expect(world.woken).toEqual(woken);
  });
});

test.each([
  { before: undefined, state: 'Pending' },
  { before: 'Running', state: 'Running' },
])(
  'a Machine without a pool of which nothing is said is pending: $before becomes $state',
  async ({ before, state }) => {
    const world = new World();
    world.machines.put(machine('m', { ...(before !== undefined && { status: { state: before } }) }));

    await world.pass('m');

    expect(world.machines.get('ns/m')?.status?.state ?? before).toBe(state);
  },
);

describe('a Machine that has lost its pool, as when the cluster was restored from a backup of before', () => {
  const lost = machine('m', {}, '7');

  function restored(): World {
    const world = new World();
    world.pools.put(pool('a', 1));
    world.pools.put(pool('b', 5));
    world.machines.put(machine('m', inPool('a'), '9'));
    world.machines.put(lost);
    return world;
  }

  test('gets the same again, also when another one has more room', async () => {
    const world = restored();
    world.pools.put(pool('a', 0));

    await world.pass('m');

    expect(world.poolOf('m')).toBe('a');
  });

  test.each([new ApiError(409, 'Conflict', 'changed'), new ApiError(403, 'Forbidden', 'no')])(
    'gets the same when that was refused the first time: %s',
    async (failure) => {
      const world = restored();
      world.failures.push(failure);

      await expect(world.pass('m')).rejects.toThrow(failure.message);
      world.touch('m');
      await world.pass('m');

      expect(world.writes.flatMap((write) => write.pool ?? [])).toEqual(['a', 'a']);
    },
  );

  test('says what refuses it, once, until it has it', async () => {
    const world = restored();
    for (let i = 0; i < 2; i++) {
      world.failures.push(new ApiError(403, 'Forbidden', 'a policy says no'));
      await expect(world.pass('m')).rejects.toThrow('a policy says no');
    }
    expect(world.events).toEqual([
      'm ApiServerRefused: The API server refuses to assign the Machine to MachinePool a: a policy says no. Retried at least every minute',
    ]);

    await world.pass('m');
    await world.pass('m');

    expect(world.machines.get('ns/m')?.status?.conditions).toEqual([
      expect.objectContaining({ type: 'Scheduled', status: 'True', message: 'MachinePool a' }),
    ]);
  });

  test('waits while that pool is gone, and gets it when it is there again', async () => {
    const world = restored();
    world.pools.remove('a');

    await world.pass('m');
    expect(world.poolOf('m')).toBeUndefined();

    world.pools.put(pool('a', 1));
    world.touch('m');
    await world.pass('m');
    expect(world.poolOf('m')).toBe('a');
  });
});
