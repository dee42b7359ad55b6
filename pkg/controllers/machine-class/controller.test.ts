import { describe, expect, test } from '@jest/globals';

import { machine, machineClass, type BuiltMachineClass } from '../../../test/builders.ts';
import { MemoryClient } from '../../../test/memory-client.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import { MACHINE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { silentLogger } from '../../base/log/logger.ts';
import { CLASS_INDEX, classIndex } from '../../operator/indexes/class-index.ts';
import { MachineClassController } from './controller.ts';
import { LONGEST_HOLD_MS, type LeftoverVMs } from './finalizer-decision.ts';

const KEY = 'default/class-1';
const signal = new AbortController().signal;

function held(change?: (c: BuiltMachineClass) => void): BuiltMachineClass {
  return machineClass((c) => {
    c.metadata.finalizers = ['example.com/other', MACHINE_FINALIZER];
    change?.(c);
  });
}

const going = held((c) => void (c.metadata.deletionTimestamp = '2026-01-01T00:00:00Z'));

/** The controller over one class; `answer` is what the provider says, `meanwhile` what happens until then. */
class World {
  readonly clock = new FakeClock();
  readonly client = new MemoryClient();
  readonly classes = new MemoryInformer([held()]);
  readonly machines = new MemoryInformer([machine()], { [CLASS_INDEX]: classIndex });
  readonly events: string[] = [];
  answer: LeftoverVMs | Error = 'none';
  /** For how long VMs of unanswered creations may still appear. */
  lateMs = 0;
  meanwhile: () => void = () => undefined;
  /** Classes of Machines that vanished. */
  readonly lost = new Set<string>();
  /** The provider omits VMs of machines. */
  isDistrusted = false;
  /** When the last look for VMs without a Machine began. */
  lookedMs = Infinity;
  readonly #controller = new MachineClassController({
    classes: this.classes,
    machines: this.machines,
    clock: this.clock,
    writer: this.client,
    late: { leftMs: () => this.lateMs },
    hasLost: (key) => this.lost.has(key),
    isDistrusted: () => this.isDistrusted,
    lookedMs: () => this.lookedMs,
    graceMs: 60_000,
    log: silentLogger,
    recorder: { event: ({ reason }) => void this.events.push(reason) },
    ownerlessVMs: () => {
      this.meanwhile();
      return this.answer instanceof Error ? Promise.reject(this.answer) : Promise.resolve(this.answer);
    },
  });

  pass(): Promise<unknown> {
    return this.#controller.reconcile(KEY, signal);
  }

  /** Two lists without VMs, a grace apart; how many writes each was followed by. */
  async emptyLists(): Promise<readonly number[]> {
    this.answer = 'none';
    await this.pass();
    const { length } = this.client.writes;
    this.clock.advance(60_000);
    await this.pass();
    return [length, this.client.writes.length];
  }

  loseMachines(): void {
    this.machines.remove('default/m-1');
  }
}

test('a class without Machines and VMs loses our finalizer only, and only as it was looked at', async () => {
  const world = new World();
  world.loseMachines();

  await world.pass();

  const { uid, resourceVersion } = held().metadata;
  expect(world.client.writes).toMatchObject([
    { intent: 'change', uid, resourceVersion, body: { metadata: { finalizers: ['example.com/other'] } } },
  ]);
});

test('a class whose VMs may appear late is asked about again when that is over, and only a list begun after it counts', async () => {
  const world = new World();
  world.loseMachines();
  world.lateMs = 90_000;

  const waiting = await world.pass();
  world.meanwhile = () => void (world.lateMs = 0);
  await world.pass();
  const early = world.client.writes.length;
  await world.pass();

  expect(waiting).toMatchObject({ afterMs: 90_000, waitingFor: 'VMs of CreateMachine calls to appear' });
  expect([early, world.client.writes.length]).toEqual([0, 1]);
});

describe('what happens while the provider is asked', () => {
  test('a Machine that comes keeps the class held', async () => {
    const world = new World();
    world.loseMachines();
    world.meanwhile = () => world.machines.put(machine((m) => void (m.metadata.resourceVersion = '2')));

    await world.pass();

    expect(world.client.writes).toEqual([]);
  });

  test('the class is written as it is now', async () => {
    const world = new World();
    world.loseMachines();
    world.meanwhile = () =>
      world.classes.put(
        held((c) => void Object.assign(c.metadata, { resourceVersion: '2', finalizers: ['new', MACHINE_FINALIZER] })),
      );

    await world.pass();

    expect(world.client.writes).toMatchObject([{ resourceVersion: '2', body: { metadata: { finalizers: ['new'] } } }]);
  });

  test.each([
    { title: 'a class of the same name is looked at anew', class: held((c) => void (c.metadata.uid = 'of another')) },
    {
      title: 'a class that says something else by now, perhaps of another account, is looked at anew',
      class: held((c) => void Object.assign(c.metadata, { resourceVersion: '2', generation: 2 })),
    },
    { title: 'nothing is written of a class that is gone', class: undefined },
  ])('$title', async ({ class: next }) => {
    const world = new World();
    world.loseMachines();
    world.meanwhile = () => (next === undefined ? world.classes.remove(KEY) : world.classes.put(next));

    expect(await world.pass()).toMatchObject({ kind: 'requeue', afterMs: 0 });
    expect(world.client.writes).toEqual([]);
  });
});

describe('a class that is being deleted', () => {
  /** It has no Machine any more. */
  function leaving(answer: LeftoverVMs | Error): World {
    const world = new World();
    world.classes.put({ ...going, metadata: { ...going.metadata, resourceVersion: '2' } });
    world.loseMachines();
    world.answer = answer;
    return world;
  }

  test.each<{ answer: LeftoverVMs | Error }>([{ answer: 'unknown' }, { answer: new Error('no list') }])(
    'stays while the provider says $answer, asks again by itself, and goes after the longest hold',
    async ({ answer }) => {
      const world = leaving(answer);

      expect(await world.pass()).toMatchObject({ kind: 'requeue', afterMs: 30_000 });
      expect(world.client.writes).toEqual([]);

      world.clock.advance(LONGEST_HOLD_MS);
      await world.pass();
      expect(world.client.writes).toHaveLength(1);
      expect(world.events).toEqual(['VMsMayBeLeft']);
    },
  );

  test('stays for as long as lists show VMs that nobody owns; from the longest hold on, it says so now and then, and asks less often', async () => {
    const world = leaving('some');

    const told: number[] = [];
    for (let minutes = 0; minutes <= 45; minutes++) {
      const before = world.events.length;
      expect(await world.pass()).toMatchObject({ kind: 'requeue', afterMs: minutes < 10 ? 30_000 : 300_000 });
      if (world.events.length > before) told.push(minutes);
      world.clock.advance(60_000);
    }
    expect([told, new Set(world.events)]).toEqual([[10, 40], new Set(['VMsLeft'])]);
    expect(world.client.writes).toEqual([]);

    expect(await world.emptyLists()).toEqual([0, 1]);
  });

  test.each<{ since: string; begin: (world: World) => void }>([
    { since: 'since it is being deleted', begin: () => undefined },
    {
      since: 'before it was deleted',
      begin: (world) => world.classes.put(held((c) => void (c.metadata.resourceVersion = '1'))),
    },
  ])(
    'stays when a provider that has shown VMs $since does not answer, or cannot list, any more: nobody has deleted them',
    async (row) => {
      const world = leaving('some');
      row.begin(world);
      await world.pass();
      world.classes.put({ ...going, metadata: { ...going.metadata, resourceVersion: '3' } });
      world.answer = new Error('no list');
      await world.pass();
      world.clock.advance(10 * LONGEST_HOLD_MS);
      await world.pass();

      world.answer = 'unsupported';
      await world.pass();

      expect([world.client.writes, world.events]).toEqual([[], ['VMsLeft']]);

      expect(await world.emptyLists()).toEqual([0, 1]);
    },
  );

  test('stays when one list is empty between two that show VMs, or one that fails comes between two that are empty', async () => {
    const world = leaving('some');
    for (const answer of ['some', 'none', 'some', 'none', 'unknown', 'none'] as const) {
      world.answer = answer;
      await world.pass();
      world.clock.advance(60_000);
    }

    expect(world.client.writes).toEqual([]);
  });

  test.each<{ what: string; begin: (world: World) => unknown; writes: number; events: readonly string[] }>([
    {
      what: 'stays, if a list has shown VMs,',
      begin(world) {
        world.answer = 'some';
        return world.pass();
      },
      writes: 0,
      events: ['VMsLeft'],
    },
    {
      what: 'stays, if a Machine has vanished,',
      begin: (world) => world.lost.add(KEY),
      writes: 0,
      events: ['VMsLeft'],
    },
    { what: 'goes at once, if there is no reason to expect VMs,', begin: () => undefined, writes: 1, events: [] },
  ])('$what when the lists of a provider that omits other VMs are empty', async ({ begin, writes, events }) => {
    const world = leaving('none');
    world.isDistrusted = true;
    await begin(world);

    await world.emptyLists();
    world.clock.advance(LONGEST_HOLD_MS);
    await world.pass();

    expect([Math.min(world.client.writes.length, 1), world.events.slice(0, 1)]).toEqual([writes, events]);

    world.isDistrusted = false;
    await world.emptyLists();
    expect(world.client.writes).not.toEqual([]);
  });

  test.each<{ what: string; begin: (world: World) => unknown; holdMs: number; events: readonly string[] }>([
    {
      what: 'a list has shown VMs',
      begin(world) {
        world.answer = 'some';
        return world.pass();
      },
      holdMs: LONGEST_HOLD_MS,
      events: ['VMsLeft'],
    },
    {
      what: 'a Machine has vanished',
      begin: (world) => world.lost.add(KEY),
      holdMs: LONGEST_HOLD_MS - 60_000 - 1,
      events: [],
    },
  ])(
    'stays, if $what, until a look for VMs without a Machine has followed two empty lists; says so: $events',
    async (row) => {
      const world = leaving('none');
      const { clock } = world;
      world.lookedMs = clock.monotonicMs();
      await row.begin(world);
      clock.advance(1);

      expect(await world.emptyLists()).toEqual([0, 0]);
      world.lookedMs = clock.monotonicMs() - 1;
      clock.advance(row.holdMs);
      await world.pass();
      expect([world.client.writes, world.events]).toEqual([[], row.events]);

      world.lookedMs = clock.monotonicMs();
      clock.advance(1);
      await world.pass();
      expect(world.client.writes).toHaveLength(1);
    },
  );

  test('of which a Machine has vanished goes after the longest hold, and says so, if no look follows lists without VMs', async () => {
    const world = leaving('none');
    world.lost.add(KEY);
    world.lookedMs = -Infinity;

    await world.pass();
    world.clock.advance(LONGEST_HOLD_MS);
    await world.pass();

    expect([world.client.writes.length, world.events]).toEqual([1, ['VMsMayBeLeft']]);
  });

  test.each<{ what: string; meanwhile: (world: World) => unknown; events: readonly string[] }>([
    { what: 'and an edit, which may have been of its account,', meanwhile: () => undefined, events: ['VMsMayBeLeft'] },
    {
      what: 'an edit, and a list that showed VMs again',
      meanwhile(world) {
        world.answer = 'some';
        return world.pass();
      },
      events: [],
    },
  ])('goes after a list that showed VMs, $what and two that are empty: $events', async ({ meanwhile, events }) => {
    const world = leaving('some');
    await world.pass();
    world.classes.put({ ...going, metadata: { ...going.metadata, resourceVersion: '3', generation: 7 } });
    world.answer = 'none';
    await world.pass();
    await meanwhile(world);

    await world.emptyLists();

    expect([world.client.writes.length, world.events]).toEqual([1, events]);
  });

  test('says that VMs are left soon after it has said that Machines use it', async () => {
    const world = new World();
    world.classes.put({ ...going, metadata: { ...going.metadata, resourceVersion: '2' } });
    await world.pass();
    world.loseMachines();
    world.answer = 'some';
    await world.pass();
    world.clock.advance(LONGEST_HOLD_MS);
    await world.pass();

    expect(world.events).toEqual(['InUse', 'VMsLeft']);
  });

  test('of which a Machine has vanished goes when two lists, a grace apart, show no VM', async () => {
    const world = leaving('none');
    world.lost.add(KEY);

    expect(await world.pass()).toMatchObject({ kind: 'requeue', afterMs: 30_000 });
    world.clock.advance(59_999);
    await world.pass();
    expect(world.client.writes).toEqual([]);

    world.clock.advance(1);
    await world.pass();
    expect(world.client.writes).toHaveLength(1);
  });

  test('is given the whole time from the moment on in which its deletion began', async () => {
    const world = new World();
    world.loseMachines();
    world.answer = 'unknown';
    await world.pass();
    world.clock.advance(LONGEST_HOLD_MS);
    world.classes.put({ ...going, metadata: { ...going.metadata, resourceVersion: '2' } });

    await world.pass();

    expect(world.client.writes).toEqual([]);
  });

  test('is given the whole time from its last Machine on', async () => {
    const world = new World();
    world.classes.put({ ...going, metadata: { ...going.metadata, resourceVersion: '2' } });
    world.loseMachines();
    world.answer = 'unknown';
    await world.pass();
    world.machines.put(machine((m) => void (m.metadata.resourceVersion = '2')));
    await world.pass();
    world.clock.advance(LONGEST_HOLD_MS);
    world.loseMachines();

    await world.pass();

    expect(world.client.writes).toEqual([]);
  });
});

describe('a class of which a Machine was let go by force', () => {
  const KEY_OF_NOTE = 'forced-removal.safety.machine.sapcloud.io/uid-of-m-1';
  const noted = held((c) => {
    c.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    c.metadata.resourceVersion = '2';
    c.metadata.annotations = { [KEY_OF_NOTE]: '{"machine":"m-1","providerID":"sim:///m-1"}' };
  });

  test('is kept for as long as nobody knows of its VM, and says so now and then', async () => {
    const world = new World();
    world.classes.put(noted);
    world.loseMachines();
    world.answer = new Error('the provider does not answer');

    await world.pass();
    world.clock.advance(2 * LONGEST_HOLD_MS);
    await world.pass();

    expect(world.client.writes).toEqual([]);
    expect(world.events).toEqual(['ForcedRemovalUnconfirmed']);
  });

  test('loses note and finalizer together when two lists, a grace apart, show no VM', async () => {
    const world = new World();
    world.classes.put(noted);
    world.loseMachines();

    expect(await world.pass()).toMatchObject({ kind: 'requeue', afterMs: 30_000 });
    world.clock.advance(59_999);
    await world.pass();
    expect(world.client.writes).toEqual([]);
    expect(world.events).toEqual([]);

    world.clock.advance(1);
    await world.pass();
    expect(world.client.writes.map(({ body }) => body)).toMatchObject([
      { metadata: { finalizers: ['example.com/other'], annotations: { [KEY_OF_NOTE]: null } } },
    ]);
  });

  test.each<{ title: string; between: (world: World) => Promise<unknown> }>([
    {
      title: 'a list that shows a VM',
      between: (world) => {
        world.answer = 'some';
        return world.pass();
      },
    },
    {
      title: 'a list that failed',
      between: (world) => {
        world.answer = new Error('the provider does not answer');
        return world.pass();
      },
    },
    {
      title: 'a Machine',
      between: async (world) => {
        world.machines.put(machine((m) => void (m.metadata.resourceVersion = '2')));
        await world.pass();
        world.loseMachines();
      },
    },
    {
      title: 'a change of what the class says, which may be of another account now,',
      between: (world) => {
        world.classes.put({ ...noted, metadata: { ...noted.metadata, resourceVersion: '3', generation: 2 } });
        return Promise.resolve();
      },
    },
  ])('$title in between begins anew', async ({ between }) => {
    const world = new World();
    world.classes.put(noted);
    world.loseMachines();
    await world.pass();
    await between(world);
    world.clock.advance(60_000);
    world.answer = 'none';

    await world.pass();

    expect(world.client.writes).toEqual([]);
  });
});
