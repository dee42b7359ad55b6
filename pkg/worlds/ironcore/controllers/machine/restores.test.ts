import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../../../../test/fakes/fake-clock.ts';
import { remoteVolume, runtimeMachine } from '../../../../../test/fakes/runtime-machine.ts';
import { MachineStore } from '../../../../../packages/providers/iri/store.ts';
import type { IronCoreMachine } from '../../api/machine.ts';
import type { IronCoreNetworkInterface, IronCorePrefix } from '../../api/network-interface.ts';
import type { IronCoreVolume } from '../../api/volume.ts';
import {
  CREATION_SENT_ANNOTATION,
  GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION,
  MISSING_WITH_ANNOTATION,
} from '../../../../apis/machine/v1alpha1/labels.ts';
import { toTimestamp } from '../../../../base/clock/clock.ts';
import { RuntimeError } from '../../runtime/error.ts';
import { ApiError } from '../../../../kube/client/errors.ts';
import { mergePatch } from '../../../../kube/client/patch.ts';
import type { PoolRuntime } from '../../runtime/gated-runtime.ts';
import { NetworkInterfaceState } from '../../runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import { ironCoreMachines, ironCoreNetworkInterfaces, ironCorePrefixes, ironCoreVolumes } from '../../api/resources.ts';
import { CLAIM } from './keys.ts';
import {
  MINUTE_MS,
  label,
  machineOf,
  meta,
  world,
  deletion,
  hasFinalizer,
  giveUp,
  shownAs,
  noted,
} from '../../../../../test/ironcore-machine-world.ts';

describe('while the runtime of another pool', () => {
  interface Other {
    readonly what: string;
    readonly has: boolean;
    /** The connection that has shown a machine of the Machine; undefined: none was shown. */
    readonly seenBy?: number;
    readonly fails?: boolean;
    readonly address?: string;
    readonly isListed?: boolean;
    readonly isGivenUp?: boolean;
    readonly goesOn: boolean;
  }
  const CASES: readonly Other[] = [
    { what: 'has a machine of the Machine', has: true, seenBy: 1, goesOn: false },
    { what: 'that has shown one does not answer', has: true, seenBy: 1, fails: true, goesOn: false },
    { what: 'that has shown one was started again without it', has: false, seenBy: 0, goesOn: false },
    { what: 'has one, and that is given up', has: true, seenBy: 1, isGivenUp: true, goesOn: true },
    { what: 'that has shown one does not have it any more', has: false, seenBy: 1, goesOn: true },
    { what: 'has none', has: false, goesOn: true },
    { what: 'does not answer, and has shown none', has: false, fails: true, goesOn: true },
    { what: 'was not asked yet', has: false, isListed: false, goesOn: false },
    { what: 'is the same one', has: false, seenBy: 0, address: 'unix:///p.sock', goesOn: true },
  ];

  function worldOf({ has, seenBy, fails = false, address = 'unix:///q.sock', ...of }: Other, metadata: object) {
    const { isListed = true, isGivenUp = false } = of;
    const there = new MachineStore();
    there.quantities.set('c', 1n);
    const machine = runtimeMachine({ labels: { [label]: 'uid-m' } }, { class: 'c' });
    const made = there.create(machine);
    const other = {
      address,
      version: async () => ({ name: 'iri', version: '1', connection: 1 }),
      machines: async () => {
        if (fails) throw new RuntimeError('ListMachines', 'Unavailable', 'reset', { isMutation: false });
        return has ? [made] : [];
      },
    } as unknown as PoolRuntime;
    const annotations = isGivenUp ? giveUp(new FakeClock()) : {};
    const it = world(machineOf(annotations, {}, metadata), [], undefined, { otherRuntimes: [['q', other]] });
    if (fails) it.keptUses.failed('q', 'reset');
    else if (isListed) it.keptUses.saw('q', []);
    if (seenBy !== undefined) it.sightings.saw('q', { machines: [made], connection: seenBy });
    return it;
  }

  test.each(CASES)('$what, a machine is made: $goesOn', async (one) => {
    const { clock, store, pass, events } = worldOf(one, {});

    for (let i = 0; i < 3; i++) {
      await pass();
      clock.advance(2 * MINUTE_MS);
    }

    expect(store.made).toBe(one.goesOn ? 1 : 0);
    const told = /^WrongRuntime: The runtime of MachinePool q has .* pool of the Machine is p: .* -n ns .* m .*give-up/;
    expect(events.some((event) => told.test(event))).toBe(!one.goesOn && one.isListed !== false);
  });

  test.each(CASES)('$what, a deletion ends: $goesOn', async (one) => {
    const it = worldOf(one, deletion);

    for (let i = 0; i < 3; i++) {
      await it.pass();
      it.clock.advance(2 * MINUTE_MS);
    }

    expect(hasFinalizer(it)).toBe(!one.goesOn);
  });
});

describe('a Machine that a restore has given another pool than its machine is in', () => {
  function elsewhere(metadata: object, annotations: Record<string, string> = {}) {
    const there = new MachineStore();
    there.quantities.set('c', 1n);
    const made = there.create(runtimeMachine({ labels: { [label]: 'uid-m' } }, { class: 'c' }));
    const at = { has: true, lists: 0 };
    const other = {
      address: 'unix:///q.sock',
      version: async () => ({ name: 'iri', version: '1', connection: 1 }),
      machines: async () => {
        at.lists += 1;
        return at.has ? [made] : [];
      },
    } as unknown as PoolRuntime;
    const it = world(machineOf(annotations, {}, metadata), [], undefined, { otherRuntimes: [['q', other]] });
    it.keptUses.saw('q', []);
    it.sightings.saw('q', { machines: [made], connection: 1 });
    return { ...it, at, made };
  }

  test.each([
    { what: 'makes none', isGoing: false },
    { what: 'is not let go', isGoing: true },
  ])('$what because of one list that omits it, however long it was held before', async ({ isGoing }) => {
    const it = elsewhere(isGoing ? deletion : {});
    for (let i = 0; i < 8; i++) it.clock.advance((await it.pass()) ?? 0);

    it.at.has = false;
    await it.pass();
    it.sightings.saw('q', { machines: [it.made], connection: 1 });
    it.at.has = true;
    it.clock.advance(MINUTE_MS);
    // As soon as at first.
    expect(await it.pass()).toBe(5_000);

    expect([it.store.made, hasFinalizer(it)]).toEqual([0, true]);
  });

  test('is given up once, also when the runtime refuses the first creation', async () => {
    const it = elsewhere({}, giveUp(new FakeClock()));
    it.refusals.push(new RuntimeError('CreateMachine', 'ResourceExhausted', 'full', { isMutation: true }));
    for (let i = 0; i < 3; i++) {
      await it.pass();
      it.machines.put(await it.client.get(ironCoreMachines, { namespace: 'ns', name: 'm' }));
    }

    expect(it.store.made).toBe(1);
  });

  test('is not given up by what is given up of its own pool', async () => {
    const it = elsewhere({});
    const pool = it.pools.get('p');
    it.pools.put({ ...pool!, metadata: { ...pool!.metadata, resourceVersion: '2', annotations: giveUp(it.clock) } });

    for (let i = 0; i < 3; i++) {
      await it.pass();
      it.machines.put(await it.client.get(ironCoreMachines, { namespace: 'ns', name: 'm' }));
    }

    expect(it.store.made).toBe(0);
    expect(it.events).toEqual([expect.stringMatching(/^WrongRuntime: .* MachinePool q has machine/)]);
  });

  test('says whose its machine may be where another cluster claims machines of that pool', async () => {
    const it = elsewhere({});
    it.rivals.saw('q', undefined, [shownAs('theirs', { annotations: { [CLAIM]: 'rival:7' } })]);

    await it.pass();

    expect(it.events).toEqual([expect.stringMatching(/^ClaimedByAnother: Machines at the runtime of MachinePool q/)]);
    expect(it.store.made).toBe(0);
  });

  test('says that its machine is there also while it lacks something here', async () => {
    const it = elsewhere({});
    it.classes.length = 0;

    await it.pass();

    expect(it.events).toEqual([expect.stringMatching(/^WrongRuntime: .* MachinePool q has machine/)]);
  });

  test('does not ask a runtime that cannot list its machines', async () => {
    const it = elsewhere({});
    it.keptUses.failed('q', 'it hangs');

    await it.pass();

    expect([it.at.lists, it.store.made]).toEqual([0, 0]);
  });
});

describe('a Machine that has lost the id of its machine in a restore', () => {
  const CASES = [
    { what: 'the same process does not list it once', connection: 0, isGone: true },
    { what: 'the runtime does not list it since it was started again', connection: 1, isGone: false },
  ];

  function lost(machine: IronCoreMachine, connection: number) {
    const it = world(machine);
    const there = new MachineStore();
    there.quantities.set('c', 1n);
    const made = there.create(runtimeMachine({ labels: { [label]: 'uid-m' } }, { class: 'c' }));
    it.sightings.saw('p', { machines: [made], connection: 0 });
    it.it.connection = connection;
    return it;
  }

  test.each(CASES)('$what: none is made at once; some day: $isGone', async ({ connection, isGone }) => {
    const it = lost(machineOf(), connection);

    await it.pass();
    expect(it.store.made).toBe(0);
    for (let i = 0; i < 3; i++) {
      it.clock.advance(MINUTE_MS);
      await it.pass();
    }

    expect(it.store.made).toBe(isGone ? 1 : 0);
    expect(it.events.some((event) => event.startsWith('MachinesLost'))).toBe(!isGone);
  });

  test.each(
    [{}, { [CREATION_SENT_ANNOTATION]: '2026-01-01T00:00:00Z' }, noted('accepted'), noted('unanswered')].flatMap(
      (note) => CASES.map((row) => ({ ...row, note })),
    ),
  )('$what: it is not let go at once unless that is expected; some day: $isGone; $note', async (row) => {
    const { connection, note } = row;
    const isExpected = Object.values(note).some((value) => value.startsWith('accepted'));
    const it = lost(machineOf(note, {}, deletion), connection);

    await it.pass();
    expect(hasFinalizer(it)).toBe(true);
    for (let i = 0; i < 3; i++) {
      it.clock.advance(MINUTE_MS);
      await it.pass();
    }

    expect(hasFinalizer(it)).toBe(!(row.isGone || isExpected));
  });

  test.each([
    { what: 'none is made', isGoing: false, afterMs: 30_000 },
    { what: 'it is not let go', isGoing: true, afterMs: 15_000 },
  ])('$what by a pass in whose middle the time to look for its machine ends', async ({ isGoing, afterMs }) => {
    for (let earlierMs = 0; earlierMs < 30; earlierMs += 1) {
      const it = lost(machineOf({}, {}, isGoing ? deletion : {}), 1);
      await it.pass();
      it.clock.advance(afterMs - earlierMs);
      // Each look at the clock takes a moment.
      const startMs = it.clock.monotonicMs();
      let looks = 0;
      it.clock.monotonicMs = () => startMs + looks++;

      await it.pass();

      expect([it.store.made, hasFinalizer(it)]).toEqual([0, true]);
    }
  });

  test.each([
    { what: 'refused', err: new RuntimeError('CreateMachine', 'ResourceExhausted', 'full', { isMutation: true }) },
    { what: 'not answered', err: new RuntimeError('CreateMachine', 'Unavailable', 'reset', { isMutation: true }) },
  ])('gets another one when that was allowed, although the first creation was $what', async ({ err }) => {
    const it = lost(machineOf(giveUp(new FakeClock())), 1);
    it.refusals.push(err);
    for (let i = 0; i < 4; i++) {
      await it.pass();
      it.machines.put(await it.client.get(ironCoreMachines, { namespace: 'ns', name: 'm' }));
      it.clock.advance(MINUTE_MS);
    }

    expect(it.store.made).toBe(1);
  });
});

/** From now on the API server fails to note with which machines one may be lost. */
function refuseNotes({ client }: ReturnType<typeof world>, code: number): void {
  const patch: typeof client.patch = client.patch.bind(client);
  client.patch = async (intent, resource, ref, change, options) => {
    if (JSON.stringify(change.body).includes(MISSING_WITH_ANNOTATION)) throw new ApiError(code, 'Some', 'a webhook');
    return await patch(intent, resource, ref, change, options);
  };
}

describe('a Machine whose creation had no answer', () => {
  const unanswered = { [CREATION_SENT_ANNOTATION]: '2025-12-31T00:00:00Z' };
  const passes = async (it: ReturnType<typeof world>, count = 3): Promise<void> => {
    for (let i = 0; i < count; i++) {
      await it.pass();
      it.clock.advance(MINUTE_MS);
    }
  };
  const haveMachines = (it: ReturnType<typeof world>, names: readonly string[]): void => {
    for (const name of names)
      it.machines.put({ ...machineOf({}, {}, meta(name)), status: { machineID: `iri://${name}` } });
  };

  test('is not let go by a runtime that lacks the only other machine it had', async () => {
    const it = world(machineOf(unanswered, {}, deletion));
    haveMachines(it, ['other']);

    await passes(it);
    expect(hasFinalizer(it)).toBe(true);
    expect(it.events.at(-1)).toMatch(
      /^MachinesLost: A creation without an answer .* \(other\), .*-n ns .* m .*give-up/,
    );

    it.shown.push(shownAs('other', { labels: { [label]: 'uid-other' } }));
    await passes(it);
    expect(hasFinalizer(it)).toBe(false);
  });

  test.each([1, 2, 7])(
    'does not get a machine from a runtime that lacks all other machines it had: %i',
    async (count) => {
      const it = world(machineOf(unanswered));
      const names = Array.from({ length: count }, (_, index) => `other-${index}`);
      haveMachines(it, names);

      await passes(it);
      expect(it.store.made).toBe(0);
      expect(new Set(it.events)).toEqual(new Set([expect.stringMatching(/^MachinesLost: .*give-up/)]));

      it.shown.push(...names.map((name) => shownAs(name, { labels: { [label]: `uid-${name}` } })));
      await passes(it);
      expect(it.store.made).toBe(1);
    },
  );

  test('needs no list of its own while another one is held for the same reason', async () => {
    const it = world(machineOf(unanswered));
    haveMachines(it, ['other']);
    it.machines.put(machineOf(unanswered, {}, meta('n')));

    await it.pass();
    await it.pass('n');
    expect([it.lists(), it.store.made]).toEqual([1, 0]);
  });

  describe('that may still be carried out', () => {
    const sentAt = { [CREATION_SENT_ANNOTATION]: toTimestamp(new FakeClock().now() - 5_000) };

    test('shares a list with others as long as nothing is missing', async () => {
      const it = world(machineOf(sentAt));
      it.machines.put(machineOf(sentAt, {}, meta('n')));

      await it.pass();
      await it.pass('n');
      expect([it.lists(), it.store.made]).toEqual([1, 0]);
    });

    test('is not lost because the list of all has it already', async () => {
      const it = world(machineOf(sentAt));
      it.shown.push(shownAs('new', { labels: { [label]: 'uid-m' } }));

      await it.pass();
      expect(it.events).toEqual(['Pending: A machine may exist that the runtime does not list yet']);
    });
  });

  test('gets a machine where another one is missing, once that is allowed', async () => {
    const it = world(machineOf({ ...unanswered, [GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION]: '2026-01-01T12:00:00Z' }));
    haveMachines(it, ['other']);

    await passes(it);
    expect(it.store.made).toBe(1);
  });

  describe.each([
    { what: 'gets no machine', metadata: {}, isDone: (it: ReturnType<typeof world>) => it.store.made === 1 },
    { what: 'is not let go', metadata: deletion, isDone: (it: ReturnType<typeof world>) => !hasFinalizer(it) },
  ])('$what from a runtime that lacks another one', ({ metadata, isDone }) => {
    const told = /^MachinesLost: A creation without an answer .* \(lost\), .*-n ns .* m .*give-up/;
    const passesOf = async (it: ReturnType<typeof world>): Promise<void> => {
      for (let i = 0; i < 3 && !isDone(it); i++) {
        await passes(it, 1);
        // The cache learns what was written.
        if (!isDone(it)) it.machines.put(await it.client.get(ironCoreMachines, { namespace: 'ns', name: 'm' }));
      }
    };
    const machineAt = async (it: ReturnType<typeof world>): Promise<IronCoreMachine> =>
      await it.client.get(ironCoreMachines, { namespace: 'ns', name: 'm' });
    const withOthers = (machine: IronCoreMachine): ReturnType<typeof world> => {
      const it = world(machine);
      haveMachines(it, ['lost', 'stays']);
      it.shown.push(shownAs('stays', { labels: { [label]: 'uid-stays' } }));
      return it;
    };
    const ENDS = [
      { what: 'got another machine', end: (it: ReturnType<typeof world>) => haveMachines(it, ['stays', 'new']) },
      { what: 'is gone', end: () => undefined },
    ].flatMap((row) => [false, true].map((isRestarted) => ({ ...row, isRestarted })));

    test.each(ENDS)(
      'that was given up, and whose Machine $what, unless that comes back; process restarted: $isRestarted',
      async ({ end, isRestarted }) => {
        const first = withOthers(machineOf(unanswered, {}, metadata));
        await passesOf(first);
        const held = await first.client.get(ironCoreMachines, { namespace: 'ns', name: 'm' });
        const it = isRestarted ? withOthers(held) : first;
        it.machines.remove('ns/lost');
        end(it);
        it.shown.push(shownAs('new', { labels: { [label]: 'uid-new' } }));

        await passesOf(it);
        expect([isDone(it), first.events.at(-1)]).toEqual([false, expect.stringMatching(told)]);

        it.shown.push(shownAs('lost', { labels: { [label]: 'uid-lost' } }));
        await passesOf(it);
        expect(isDone(it)).toBe(true);
      },
    );

    test('that was given up, but once it is given up itself', async () => {
      const it = withOthers(machineOf(unanswered, {}, metadata));
      await passesOf(it);
      it.machines.remove('ns/lost');
      const patch = mergePatch(machineOf(), { metadata: { annotations: giveUp(it.clock) } });
      it.machines.put(await it.client.patch('change', ironCoreMachines, { namespace: 'ns', name: 'm' }, patch));

      await passesOf(it);
      expect(isDone(it)).toBe(true);
    });

    test('that was given up while the creation could still be carried out', async () => {
      for (const isRestarted of [false, true]) {
        const sentAt = { [CREATION_SENT_ANNOTATION]: toTimestamp(new FakeClock().now() - 5_000) };
        const first = withOthers(machineOf(sentAt, {}, metadata));
        await first.pass();
        const held = await machineAt(first);
        const it = isRestarted ? withOthers(held) : first;
        it.machines.put(held);
        it.machines.remove('ns/lost');

        for (let i = 0; i < 5; i++) await passesOf(it);
        expect([isDone(it), first.events.at(-1)]).toEqual([false, expect.stringMatching(told)]);
      }
    });

    test('of which nothing is noted once it has come back for a while', async () => {
      const it = withOthers(machineOf(unanswered, {}, metadata));
      await passesOf(it);
      it.shown.push(shownAs('lost', { labels: { [label]: 'uid-lost' } }));
      // It waits for something else.
      it.classes.splice(0);
      await it.pass();
      expect((await machineAt(it)).metadata.annotations).toHaveProperty([MISSING_WITH_ANNOTATION]);

      it.clock.advance(31_000);
      await it.pass();
      const isGone = !hasFinalizer(it);
      const { annotations = {} } = isGone ? {} : (await machineAt(it)).metadata;
      expect(annotations).not.toHaveProperty([MISSING_WITH_ANNOTATION]);
    });

    test('that came back just before another process, which waits for the others as well', async () => {
      const first = withOthers(machineOf(unanswered, {}, metadata));
      await passesOf(first);
      first.shown.push(shownAs('lost', { labels: { [label]: 'uid-lost' } }));
      await first.pass();

      const it = withOthers(await machineAt(first));
      it.shown.push(shownAs('lost', { labels: { [label]: 'uid-lost' } }));
      await it.pass();
      it.clock.advance(29_000);
      await it.pass();
      expect(isDone(it)).toBe(false);

      it.clock.advance(2_000);
      await passesOf(it);
      expect(isDone(it)).toBe(true);
    });

    test.each([403, 500])('nor while the API server fails to note that (%i), which is told', async (code) => {
      const it = withOthers(machineOf(unanswered, {}, metadata));
      refuseNotes(it, code);

      await passesOf(it);
      expect(isDone(it)).toBe(false);
      expect(it.events).toContainEqual(expect.stringMatching(told));
      expect((await machineAt(it)).status?.conditions).toContainEqual(
        expect.objectContaining({ type: 'Ready', reason: 'MachinesLost' }),
      );
      const refusals = it.events.filter((event) => event.startsWith('ApiServerRefused: '));
      expect(refusals.length > 0).toBe(code === 403);
    });

    test('although its status cannot be written: another process knows', async () => {
      const first = withOthers(machineOf(unanswered, {}, metadata));
      first.client.failures.push(new ApiError(500, 'InternalError', 'failed calling webhook'));
      await first.pass();
      const it = withOthers(await machineAt(first));
      it.machines.remove('ns/lost');

      await passesOf(it);
      expect(isDone(it)).toBe(false);
    });

    test('whatever its id looks like, until it is shown again', async () => {
      const it = world(machineOf(unanswered, {}, metadata));
      it.machines.put({ ...machineOf({}, {}, meta('lost')), status: { machineID: 'iri://a b%' } });
      await passesOf(it);
      it.machines.remove('ns/lost');
      await passesOf(it);
      expect(isDone(it)).toBe(false);

      it.shown.push(shownAs('a b%', { labels: { [label]: 'uid-lost' } }));
      await passesOf(it);
      expect(isDone(it)).toBe(true);
    });

    test.each([
      { what: 'its own', of: 'uid-m', isHeld: true },
      { what: 'its own, with what is no encoded id', of: 'uid-m', id: '%', isHeld: true },
      { what: 'that of the Machine which it was copied from', of: 'uid-n', isHeld: false },
    ])('that nobody knows: a note that is $what holds it: $isHeld', async ({ of, id = 'gone', isHeld }) => {
      const it = world(machineOf({ ...unanswered, [MISSING_WITH_ANNOTATION]: `${of} ${id}` }, {}, metadata));

      await passesOf(it);
      expect([isDone(it), it.events.some((event) => event.startsWith('MachinesLost: '))]).toEqual([!isHeld, isHeld]);
    });

    test('whose deletion had no answer, while this process knows by a younger one that the runtime has not lost it', async () => {
      const [lost, stays] = ['lost', 'stays'].map((id, at) =>
        shownAs(id, { labels: { [label]: `uid-${id}` }, createdAt: BigInt(at + 1) }),
      );
      const it = world(machineOf(unanswered, {}, metadata));
      haveMachines(it, ['stays']);
      const going = machineOf(noted('unanswered', 'uid-lost'), {}, { ...meta('lost'), ...deletion });
      it.machines.put({ ...going, status: { machineID: 'iri://lost' } });
      it.sightings.saw('p', { machines: [lost!, stays!], connection: 0 });
      it.it.connection = 1;
      it.shown.push(stays!);

      await passesOf(it);
      expect(isDone(it)).toBe(true);
    });

    test.each([
      { what: 'and that is younger than it', madeAt: '2025-12-30T12:00:00Z', isHeld: false },
      { what: 'and that is younger than it, as are many', count: 6, madeAt: '2025-12-30T12:00:00Z', isHeld: true },
      { what: 'and that may be older', madeAt: '2025-12-29T00:00:00Z', isHeld: true },
    ])(
      'to which its deletion was sent, and which shows one that was made beside it, $what: $isHeld',
      async ({ count = 1, madeAt, isHeld }) => {
        const it = world(machineOf(unanswered, {}, metadata));
        for (let i = 0; i < count; i++) {
          const sent = { [CREATION_SENT_ANNOTATION]: '2025-12-30T00:00:00Z', ...noted('sent', `uid-lost-${i}`) };
          const going = machineOf(sent, {}, { ...meta(`lost-${i}`), ...deletion });
          it.machines.put({ ...going, status: { machineID: `iri://lost-${i}` } });
        }
        const beside = machineOf({ [CREATION_SENT_ANNOTATION]: madeAt }, {}, meta('stays'));
        it.machines.put({ ...beside, status: { machineID: 'iri://stays' } });
        it.shown.push(shownAs('stays', { labels: { [label]: 'uid-stays' } }));

        await passesOf(it);
        expect(isDone(it)).toBe(!isHeld);
      },
    );

    test('that this process has seen go since', async () => {
      const it = withOthers(machineOf(unanswered, {}, metadata));
      await passesOf(it);
      it.machines.remove('ns/lost');
      it.sightings.saw('p', { machines: [shownAs('lost', { deletedAt: 1n })], connection: 0 });

      await passesOf(it);
      expect(isDone(it)).toBe(true);
    });
  });

  test('is deleted with its machine although the API server refuses to take off what was noted before that was shown', async () => {
    const it = world(machineOf({ ...unanswered, [MISSING_WITH_ANNOTATION]: 'uid-m lost' }, {}, deletion));
    it.store.create(runtimeMachine({ labels: { [label]: 'uid-m' } }, { class: 'c' }));
    refuseNotes(it, 403);

    await passes(it);
    expect(it.store.list({ id: '', labelSelector: {} })).toEqual([]);
  });

  test.each([1, 2, 7])('is let go by the connection that has shown all that is missing: %i', async (count) => {
    const it = world(machineOf(unanswered, {}, deletion));
    const names = Array.from({ length: count }, (_, index) => `other-${index}`);
    haveMachines(it, names);
    const machines = names.map((name) => shownAs(name, { labels: { [label]: `uid-${name}` } }));
    it.sightings.saw('p', { machines, connection: 0 });

    await it.pass();
    expect(hasFinalizer(it)).toBe(count > 1);
    const text = `${count} of ${count} machines of MachinePool p, all of which it listed before`;
    expect(it.events.filter((event) => event.includes(text))).toHaveLength(count > 1 ? 1 : 0);
    expect(it.events.length).toBe(count > 1 ? 1 : 0);

    it.clock.advance(MINUTE_MS);
    await passes(it, 2);
    expect(hasFinalizer(it)).toBe(false);
  });
});

test.each([
  { count: 0, what: 'did nothing for another one: it is held for that', made: 0 },
  { count: 1, what: 'took off the note of its creation: the same', made: 0 },
  { count: 2, what: 'took off its id, too: another one is made', made: 1 },
  { count: 3, what: 'noted that one is sent: it is held for that', made: 0 },
])(
  'of a machine that was found to be gone while another one is missing, the process before $what',
  async ({ count, made }) => {
    const sent = { [CREATION_SENT_ANNOTATION]: '2025-12-31T00:00:00Z' };
    const [x, z, stays] = ['m', 'z', 'stays'].map((id) => shownAs(id, { labels: { [label]: `uid-${id}` } }));
    const worldWith = (machine: IronCoreMachine): ReturnType<typeof world> => {
      const it = world(machine);
      for (const name of ['z', 'stays'])
        it.machines.put({ ...machineOf({}, {}, meta(name)), status: { machineID: `iri://${name}` } });
      it.shown.push(stays!);
      return it;
    };
    const before = worldWith({ ...machineOf(sent), status: { machineID: 'iri://m' } });
    before.sightings.saw('p', { machines: [x!, z!, stays!], connection: 0 });
    await before.pass();
    before.clock.advance(31_000);
    const dies = Array.from({ length: 9 }, () => new ApiError(0, 'Unreachable', 'reset'));
    before.client.failures.push(...Array.from({ length: count }, () => undefined), ...dies);
    await before.pass();

    const it = worldWith(await before.client.get(ironCoreMachines, { namespace: 'ns', name: 'm' }));
    for (let i = 0; i < 5; i++) {
      await it.pass();
      it.clock.advance(MINUTE_MS);
    }

    expect([it.store.made, it.events.some((event) => event.startsWith('MachinesLost'))]).toEqual([made, made === 0]);
  },
);

describe('a machine that is shown again by nothing but the list that is to say that it is gone', () => {
  const status = { machineID: 'iri://x' };
  const CASES = [
    { what: 'known by its label', machine: machineOf(), by: { [label]: 'uid-m' } },
    { what: 'known by its id', machine: { ...machineOf(), status }, by: {} },
    { what: 'given up', machine: { ...machineOf(giveUp(new FakeClock())), status }, by: { [label]: 'uid-m' } },
  ].flatMap((row) => [false, true].map((isGoing) => ({ ...row, isGoing })));

  test.each(CASES)('keeps its Machine, and is the only one: $what; deleted: $isGoing', async (row) => {
    const { machine, by, isGoing } = row;
    const x = shownAs('x', { labels: by });
    const it = world({ ...machine, metadata: { ...machine.metadata, ...(isGoing && deletion) } });
    it.sightings.saw('p', { machines: [shownAs('x', { labels: { [label]: 'uid-m' } })], connection: 0 });
    await it.pass();
    it.shown.push(x);
    it.clock.advance(31_000);

    await it.pass();
    expect([it.store.made, hasFinalizer(it)]).toEqual([0, true]);
    expect(it.events.at(-1)).toMatch(/^MachinesLost: The runtime lists .* among all of its machines, but did not/);
    // When that has ended, it is looked for as if it had just vanished.
    it.shown.length = 0;
    await it.pass();
    expect([it.store.made, hasFinalizer(it)]).toEqual([0, true]);
    it.clock.advance(31_000);
    await it.pass();
    expect([it.store.made, hasFinalizer(it)]).toEqual(isGoing ? [0, false] : [1, true]);
  });
});

test('a Volume in whose place an entry has got another one is released when the machine no longer has it', async () => {
  const volumeOf = (name: string): IronCoreVolume => ({
    metadata: meta(name),
    spec: { claimRef: { name: 'm', uid: 'uid-m' } },
    status: { state: 'Available', access: { driver: 'ceph', handle: name } },
  });
  const naming = (name: string) => ({
    volumes: [
      { name: 'data', device: 'oda', volumeRef: { name } },
      { name: 'disk', device: 'odb', emptyDisk: {} },
    ],
  });
  const it = world(machineOf({}, naming('before')), [volumeOf('before'), volumeOf('after')]);
  it.client.put(ironCoreVolumes, volumeOf('before'));
  await it.pass();
  const [made] = it.store.all();
  if (made === undefined) throw new Error('none was made');
  const { status } = made;
  const live = await it.client.get(ironCoreMachines, { namespace: 'ns', name: 'm' });
  const changed = { ...live, spec: { ...live.spec, ...naming('after') } };
  it.client.put(ironCoreMachines, changed);
  it.machines.put(changed);
  const isReleased = (): boolean =>
    it.client.writes.some(
      ({ what, body }) => what === 'volumes/before' && JSON.stringify(body).includes('"claimRef":null'),
    );
  const shown = [...status.volumes];

  // The guest does not let go of it.
  await it.pass();
  status.volumes = shown;
  await it.pass();
  await it.pass();
  expect([made.spec.volumes.map(({ name }) => name), isReleased()]).toEqual([['disk'], false]);
  const why = 'data waits for the runtime to detach the former one';
  expect(JSON.stringify(it.client.writes.at(-1)?.body)).toContain(why);

  // For whatever reason the runtime lags behind: this one is gone.
  status.volumes = shown.filter(({ name }) => name === 'disk');
  status.observedGeneration -= 1n;
  await it.pass();
  expect([made.spec.volumes[1]?.connection?.handle, isReleased()]).toEqual(['after', true]);
});

describe('a NetworkInterface in whose place an entry names another one', () => {
  const machineRef = { name: 'm', uid: 'uid-m' };
  const network = { metadata: meta('net'), spec: { providerID: 'net-1' } };
  const template = { ephemeral: { networkInterfaceTemplate: { spec: { networkRef: { name: 'net' } } } } };
  const made = {
    annotations: { 'common.ironcore.dev/ephemeral-managed-by': 'ephemeral-manager' },
    ownerReferences: [
      { apiVersion: 'compute.ironcore.dev/v1alpha1', kind: 'Machine', name: 'm', uid: 'uid-m', controller: true },
    ],
  };
  const nicOf = (name: string, ip: string, metadata: object = {}): IronCoreNetworkInterface => ({
    metadata: { ...meta(name), ...metadata },
    spec: { networkRef: { name: 'net' }, machineRef, ips: [ip === '' ? { ephemeral: {} } : { value: ip }] },
  });
  const naming = (entry: object) => ({ networkInterfaces: [{ name: 'eth', ...entry }] });
  const before = { networkInterfaceRef: { name: 'm-eth' } };

  test.each([
    { what: 'released', entry: before, nic: nicOf('m-eth', '10.0.0.1') },
    { what: 'released, by the address of its prefix', entry: before, nic: nicOf('m-eth', '') },
    { what: 'deleted', entry: template, nic: nicOf('m-eth', '10.0.0.1', made) },
  ])('is $what when the machine no longer has it, and not before', async ({ entry, nic }) => {
    const it = world(machineOf({}, naming(entry)), [], undefined, { nics: [nic], networks: [network] });
    const controller = { kind: 'NetworkInterface', name: 'm-eth', uid: 'uid-m-eth', controller: true };
    const prefix: IronCorePrefix = {
      metadata: { ...meta('m-eth-0'), ownerReferences: [{ apiVersion: '', ...controller }] },
      spec: { prefix: '10.0.0.1/32' },
      status: { phase: 'Allocated' },
    };
    it.client.put(ironCorePrefixes, prefix);
    it.client.put(ironCoreNetworkInterfaces, nic);
    await it.pass();
    const [machine] = it.store.all();
    if (machine === undefined) throw new Error('none was made');
    const { status } = machine;
    status.networkInterfaces = [{ name: 'eth', handle: 'h', state: NetworkInterfaceState.NETWORK_INTERFACE_PENDING }];
    const shown = [...status.networkInterfaces];
    const live = await it.client.get(ironCoreMachines, { namespace: 'ns', name: 'm' });
    const changed = { ...live, spec: { ...live.spec, ...naming({ networkInterfaceRef: { name: 'nic-2' } }) } };
    it.client.put(ironCoreMachines, changed);
    it.machines.put(changed);
    const isFree = (): boolean =>
      it.client.writes.some(
        ({ verb, what, body }) =>
          what === 'networkinterfaces/m-eth' &&
          (verb === 'delete' || JSON.stringify(body).includes('"machineRef":null')),
      );

    // What takes its place is not there yet.
    await it.pass();
    await it.pass();
    expect([machine.spec.networkInterfaces.map(({ ips }) => ips), isFree()]).toEqual([[['10.0.0.1']], false]);

    // The guest does not let go of it.
    it.networkInterfaces.put(nicOf('nic-2', '10.0.0.2'));
    await it.pass();
    status.networkInterfaces = shown;
    await it.pass();
    expect([machine.spec.networkInterfaces, isFree()]).toEqual([[], false]);

    status.networkInterfaces = [];
    await it.pass();
    expect([machine.spec.networkInterfaces.map(({ ips }) => ips), isFree()]).toEqual([[['10.0.0.2']], true]);
  });

  test('does not hold one that the machine no longer has, which another Machine may need to let go of what is waited for', async () => {
    const free = nicOf('free', '10.0.0.3');
    const nics = [nicOf('m-eth', '10.0.0.1'), free];
    const it = world(machineOf({}, naming(before)), [], undefined, { nics, networks: [network] });
    it.client.put(ironCoreNetworkInterfaces, ...nics);
    await it.pass();
    const live = await it.client.get(ironCoreMachines, { namespace: 'ns', name: 'm' });
    it.machines.put({ ...live, spec: { ...live.spec, ...naming({ networkInterfaceRef: { name: 'nic-2' } }) } });
    it.client.writes.length = 0;

    await it.pass();

    expect(it.client.writes.filter(({ what }) => what.startsWith('networkinterfaces/'))).toMatchObject([
      { what: 'networkinterfaces/free', body: { spec: { machineRef: null } } },
    ]);
  });
});

describe('a Volume of which a restore has forgotten that another Machine has it', () => {
  const claimed: IronCoreVolume = {
    metadata: meta('data'),
    spec: { claimRef: { name: 'm', uid: 'uid-m' } },
    status: { state: 'Available', access: { driver: 'ceph', handle: 'h' } },
  };
  const volumes = [{ name: 'data', device: 'oda', volumeRef: { name: 'data' } }];
  const other: IronCoreMachine = { ...machineOf(), metadata: meta('other') };
  const user = runtimeMachine({ id: 'x' }, { volumes: [remoteVolume('data', { driver: 'ceph', handle: 'h' })] });

  test.each(['p', 'q'])(
    'is not given away while its machine in pool %s uses it, which is told with its Machine',
    async (pool) => {
      const it = world(machineOf({}, { volumes }), [claimed]);
      it.keptUses.saw(pool, [], [], [{ machine: user, owner: other }]);

      await it.pass();

      expect(it.store.made).toBe(0);
      const told = new RegExp(
        `^VolumeNotReady: Volume data is in use by machine x of Machine ns/other at .* MachinePool ${pool}: `,
      );
      expect(it.events).toEqual([expect.stringMatching(told)]);

      expect(it.keptUses.saw(pool, [])).toEqual(['ns/m']);
      await it.pass();
      expect(it.store.made).toBe(1);
    },
  );

  test.each([
    { what: 'its MachinePool', of: 'pool' },
    { what: 'the Volume', of: 'volume' },
    { what: 'its MachinePool, although there is another Machine of that name', of: 'pool', uid: 'new' },
    { what: 'no MachinePool while its Machine is there', of: 'pool', uid: 'uid-other' },
  ])('is given up with a runtime that does not answer by a permission on $what', async ({ of, uid }) => {
    const isThere = uid === 'uid-other';
    const annotations = giveUp(new FakeClock());
    const withPermission = { ...claimed, metadata: { ...claimed.metadata, annotations } };
    const it = world(machineOf({}, { volumes }), [of === 'volume' ? withPermission : claimed]);
    it.keptUses.saw('q', [], [], [{ machine: user, owner: other }]);
    it.keptUses.failed('q', 'no such host');
    if (uid !== undefined) it.machines.put({ ...other, metadata: { ...other.metadata, uid } });
    await it.pass();
    expect(it.store.made).toBe(of === 'volume' ? 1 : 0);
    const told = isThere ? 'ns/other' : 'kubectl annotate --overwrite machinepools.compute.ironcore.dev q safety';
    expect(it.events.filter((event) => event.includes(told))).toHaveLength(of === 'volume' ? 0 : 1);

    if (of === 'pool') it.pools.put({ metadata: { ...meta('q'), namespace: '', annotations } });
    await it.pass();
    expect(it.store.made).toBe(isThere ? 0 : 1);
  });

  test('is attached to a machine when all pools have said what they use', async () => {
    const q = { address: 'unix:///q.sock' } as PoolRuntime;
    const it = world(machineOf({}, { volumes }), [claimed], undefined, { otherRuntimes: [['q', q]] });
    const made = runtimeMachine({ labels: { [label]: 'uid-m' } }, { class: 'c' });
    const { spec, metadata } = it.store.create(made);
    it.sightings.saw('p', { machines: [it.store.get(metadata.id)], connection: 0 });

    await it.pass();
    for (let passes = 0; passes < 3; passes++) expect(await it.pass()).toBe(1_000);
    expect(spec.volumes).toEqual([]);
    const why = 'data waits for the first list of all machines of the runtime of MachinePool q';
    expect(JSON.stringify(it.client.writes.at(-1)?.body)).toContain(why);

    it.keptUses.saw('q', []);
    await it.pass();
    expect(it.store.get(metadata.id).spec.volumes).toHaveLength(1);
  });

  test('stays with the machine that has it, also when another one has it, too', async () => {
    const it = world(machineOf({}, { volumes }), [claimed]);
    await it.pass();
    const [own] = it.store.all();
    if (own === undefined) throw new Error('none was made');
    it.keptUses.saw(
      'p',
      [],
      [],
      [
        { machine: own, owner: machineOf() },
        { machine: user, owner: other },
      ],
    );

    await it.pass();

    expect(it.store.all().map(({ spec }) => spec?.volumes.map(({ name }) => name))).toEqual([['data']]);
    expect(JSON.stringify(it.client.writes.at(-1)?.body)).toContain('in use by machine x of Machine ns/other');
  });

  describe('takes the place of another one that is given for it', () => {
    const CASES = [
      { what: 'by a Machine that was looked at since', stays: false },
      { what: 'not by one that is gone, or no longer looked at', isLookedAt: false, stays: true },
      { what: 'not by one in a pool that another cluster claims', isContested: true, stays: true },
      { what: 'not before all pools have said what they use', isSeen: false, stays: true },
    ];

    test.each(CASES)('$what', async ({ isLookedAt = true, isContested = false, isSeen = true, stays }) => {
      const r = { address: 'unix:///r.sock' } as PoolRuntime;
      const otherRuntimes = isSeen ? [] : ([['r', r]] as const);
      const it = world(machineOf({}, { volumes }), [claimed], undefined, { otherRuntimes });
      const former = {
        ...user.spec,
        class: 'c',
        volumes: [remoteVolume('data', { handle: 'g' }, 'oda')],
      };
      const made = runtimeMachine({ labels: { [label]: 'uid-m' } }, former);
      const own = it.store.create(made);
      it.sightings.saw('p', { machines: [own], connection: 0 });
      it.keptUses.saw('p', [], [], [{ machine: own, owner: machineOf() }]);
      it.keptUses.saw('q', [], [], [{ machine: user, owner: other }]);
      it.keptUses.offers(other, [{ gives: ['volume ceph h'], wants: ['volume  g'] }]);
      if (!isLookedAt) await it.pass('other');
      const rival = shownAs('z', { annotations: { [CLAIM]: 'rival:9' } });
      if (isContested) it.rivals.saw('q', undefined, [rival]);

      await it.pass();

      expect(it.store.get(own.metadata.id).spec.volumes).toHaveLength(stays ? 1 : 0);
    });
  });
});
