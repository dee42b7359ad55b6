import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../../../../test/fakes/fake-clock.ts';
import type { MachineStore } from '../../../../../packages/providers/iri/store.ts';
import { runtimeMachine } from '../../../../../test/fakes/runtime-machine.ts';
import type { MemoryClient } from '../../../../../test/memory-client.ts';
import type { IronCoreMachine, IronCoreMachineStatus } from '../../api/machine.ts';
import { NO_DOWNWARD_API } from '../../api/downward-api.ts';
import type { IronCoreVolume } from '../../api/volume.ts';
import {
  CREATION_SENT_ANNOTATION,
  CREATION_SENT_TO_ANNOTATION,
  MISSING_WITH_ANNOTATION,
  DELETION_SENT_ANNOTATION,
  GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION,
} from '../../../../apis/machine/v1alpha1/labels.ts';
import { toTimestamp } from '../../../../base/clock/clock.ts';
import { GateClosedError } from '../../../../kube/gate/gate.ts';
import { RuntimeError } from '../../runtime/error.ts';
import { MachineState, Power } from '../../runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import { ApiError } from '../../../../kube/client/errors.ts';
import { secrets } from '../../../../kube/client/resource.ts';
import { ironCoreMachines } from '../../api/resources.ts';
import type { Rivals } from './rivals.ts';
import {
  MINUTE_MS,
  label,
  meta,
  machineOf,
  world,
  deletion,
  hasFinalizer,
  giveUp,
  shownAs,
  noted,
} from '../../../../../test/ironcore-machine-world.ts';

test('that a creation is about to be sent is written before it is', async () => {
  const { clock, client, store, pass, log } = world(machineOf());

  await pass();

  expect(store.made).toBe(1);
  expect(log).toEqual(['machines/m']);
  expect(client.writes[0]?.body).toEqual({
    metadata: {
      annotations: {
        [CREATION_SENT_ANNOTATION]: toTimestamp(clock.now()),
        [CREATION_SENT_TO_ANNOTATION]: 'iri at unix:///p.sock',
        [MISSING_WITH_ANNOTATION]: null,
      },
    },
  });
});

test('a creation that the process before has sent is looked for for two minutes before another one is', async () => {
  const sentAt = toTimestamp(new FakeClock().now());
  const { clock, store, pass } = world(machineOf({ [CREATION_SENT_ANNOTATION]: sentAt }));

  await pass();
  clock.advance(2 * MINUTE_MS - 1);
  await pass();
  expect(store.made).toBe(0);

  clock.advance(1);
  await pass();
  expect(store.made).toBe(1);
});

describe('a creation without an answer, sent by the process before to', () => {
  const sent = (recipient: string): Record<string, string> => ({
    [CREATION_SENT_ANNOTATION]: toTimestamp(new FakeClock().now()),
    [CREATION_SENT_TO_ANNOTATION]: recipient,
  });
  const CASES = [
    { what: 'the runtime that answers', recipient: 'iri at unix:///p.sock', isHeld: false },
    { what: 'a runtime of another name', recipient: 'other at unix:///p.sock', isHeld: true },
    { what: 'a runtime of the same name elsewhere', recipient: 'iri at unix:///q.sock', isHeld: true },
  ];

  test.each(CASES)('$what: another one is not sent: $isHeld', async ({ recipient, isHeld }) => {
    const { clock, store, pass, events } = world(machineOf(sent(recipient)));

    await pass();
    clock.advance(3 * MINUTE_MS);
    await pass();

    expect(store.made).toBe(isHeld ? 0 : 1);
    const told =
      /^WrongRuntime: .* was sent to runtime .*MachinePool p now has iri at unix:\/\/\/p.sock: .*-n ns .* m .*give-up/;
    expect(events.some((event) => told.test(event))).toBe(isHeld);
  });

  test.each(CASES)('$what: the deletion of its Machine waits: $isHeld', async ({ recipient, isHeld }) => {
    const it = world(machineOf(sent(recipient), {}, deletion));

    await it.pass();
    it.clock.advance(3 * MINUTE_MS);
    await it.pass();

    expect(hasFinalizer(it)).toBe(isHeld);
  });

  test('a runtime that is given up is sent to another one', async () => {
    const { clock, store, pass } = world(machineOf({ ...sent('other at x'), ...giveUp(new FakeClock()) }));

    await pass();
    clock.advance(3 * MINUTE_MS);
    await pass();

    expect(store.made).toBe(1);
  });
});

test.each([
  { err: new RuntimeError('CreateMachine', 'ResourceExhausted', 'full', { isMutation: true }), isNoted: false },
  { err: new GateClosedError('fenced', undefined, 'closed'), isNoted: false },
  { err: new RuntimeError('CreateMachine', 'Unavailable', 'reset', { isMutation: true }), isNoted: true },
])('a creation that ended with $err.message is noted: $isNoted', async ({ err, isNoted }) => {
  const it = world(machineOf());
  it.refusals.push(err);

  await it.pass();

  const { metadata } = await it.client.get(ironCoreMachines, { namespace: 'ns', name: 'm' });
  const { [CREATION_SENT_ANNOTATION]: at, [CREATION_SENT_TO_ANNOTATION]: to } = metadata.annotations ?? {};
  expect([typeof at, typeof to].includes('string')).toBe(isNoted);
});

test('that somebody has asked for a look is taken off, with nothing else', async () => {
  const { client, store, pass } = world(machineOf({ 'reconcile.common.ironcore.dev/requested-at': 'now', other: 'x' }));

  await pass();

  const body = { metadata: { annotations: { 'reconcile.common.ironcore.dev/requested-at': null } } };
  expect(client.writes).toMatchObject([{ what: 'machines/m', resourceVersion: '1', body }]);
  expect([client.writes[0]?.body, store.made]).toEqual([body, 0]);
});

describe('of a machine that is made anew, when the process before died', () => {
  const HERE = 'iri at unix:///p.sock';
  const now = toTimestamp(new FakeClock().now());
  const noteOf = (at: string, to: string): Record<string, string> => ({
    [CREATION_SENT_ANNOTATION]: at,
    [CREATION_SENT_TO_ANNOTATION]: to,
  });
  const old = noteOf('2025-12-31T00:00:00Z', HERE);

  test.each([
    { what: 'before it wrote anything: it is held', machineID: 'iri://gone', note: old, atOnce: 0, later: 0 },
    { what: 'when it had taken that note off: it is held', machineID: 'iri://gone', note: {}, atOnce: 0, later: 0 },
    { what: 'when it had taken the id off, too: it is made', machineID: '', note: {}, atOnce: 1, later: 1 },
    {
      what: 'when it had noted the creation, and the pool is elsewhere by now: it is held',
      machineID: '',
      note: noteOf('2025-12-31T00:00:00Z', 'iri at unix:///q.sock'),
      atOnce: 0,
      later: 0,
    },
    {
      what: 'when it had noted the creation: it is made later',
      machineID: '',
      note: noteOf(now, HERE),
      atOnce: 0,
      later: 1,
    },
    {
      what: 'when it was made: it is found',
      machineID: '',
      note: noteOf(now, HERE),
      isMade: true,
      atOnce: 1,
      later: 1,
    },
  ])('$what', async ({ machineID, note, isMade = false, atOnce, later }) => {
    const it = world({ ...machineOf(note), status: { machineID } });
    if (isMade) it.store.create(runtimeMachine({ labels: { [label]: 'uid-m' } }, { class: 'c' }));

    await it.pass();
    expect(it.store.made).toBe(atOnce);
    it.clock.advance(2 * MINUTE_MS);
    await it.pass();
    await it.pass();

    expect(it.store.made).toBe(later);
  });
});

test('a note without an answer is no creation', async () => {
  const sentAt = toTimestamp(new FakeClock().now());
  const { client, machines, store, pass } = world(machineOf());
  client.failures.push(new ApiError(0, 'Unreachable', 'reset'));

  await pass();
  machines.put(machineOf({ [CREATION_SENT_ANNOTATION]: sentAt }, {}, { resourceVersion: '2' }));
  expect(store.made).toBe(0);
  await pass();

  expect(store.made).toBe(1);
});

test('of a Machine that is being deleted none is sent, although the cache does not know it yet', async () => {
  const { client, store, pass } = world(machineOf());
  client.put(ironCoreMachines, machineOf({}, {}, { deletionTimestamp: '2026-01-01T00:00:00Z' }));

  await pass();

  expect(store.made).toBe(0);
  // Nor is one looked for.
  const { annotations } = (await client.get(ironCoreMachines, { namespace: 'ns', name: 'm' })).metadata;
  expect(annotations).toEqual({});
});

test.each([
  { what: 'was not sent', refusal: new GateClosedError('fenced', undefined, 'not now'), made: 1 },
  { what: 'was refused', refusal: new RuntimeError('CreateMachine', 'Aborted', 'no', { isMutation: true }), made: 1 },
  { what: 'has no answer', refusal: new RuntimeError('CreateMachine', 'Unknown', '', { isMutation: true }), made: 0 },
])('a creation that $what: made after the next pass: $made', async ({ refusal, made }) => {
  const { store, pass, refusals } = world(machineOf());
  refusals.push(refusal);

  await pass();
  await pass();

  expect(store.made).toBe(made);
});

test('a volume that the API server refuses to make holds up nothing else, and is told with its words', async () => {
  const volumes = [{ name: 'data', device: 'oda', ephemeral: { volumeTemplate: {} } }];
  const { client, pass, events } = world(machineOf({}, { volumes }));
  client.failures.push(new ApiError(403, 'Forbidden', 'exceeded quota: volumes'));

  await pass();

  expect(events[0]).toBe('VolumeNotReady: Volume m-data cannot be created: exceeded quota: volumes');
  expect(JSON.stringify(client.writes.at(-1)?.body)).toContain('Volume m-data does not exist');
});

describe('the only machine of a pool, which the runtime does not show any more,', () => {
  const CASES = [
    { what: 'was there on this connection', shown: shownAs('gone'), connection: 0, isBelieved: true },
    {
      what: 'was there before the runtime or its state was another',
      shown: shownAs('gone'),
      connection: 1,
      isBelieved: false,
    },
    {
      what: 'was seen going, whatever came since',
      shown: shownAs('gone', { deletedAt: 1n }),
      connection: 1,
      isBelieved: true,
    },
    { what: 'was not seen by this process', shown: shownAs('other'), connection: 0, isBelieved: false },
  ];

  async function look(machine: IronCoreMachine, { shown, connection }: (typeof CASES)[number]) {
    const found = world({ ...machine, status: { machineID: 'iri://gone' } });
    found.sightings.saw('p', { machines: [shown], connection: 0 });
    found.it.connection = connection;
    await found.pass();
    found.clock.advance(MINUTE_MS);
    await found.pass();
    return found;
  }

  // promise: machines-ironcore/machine-ironcore-made-twice
  test.each(CASES)('and which $what: one is created anew: $isBelieved', async (row) => {
    const { store, events } = await look(machineOf(), row);

    expect(store.made).toBe(row.isBelieved ? 1 : 0);
    const told =
      /MachinesLost: The runtime does not list iri:\/\/gone, .*kubectl -n ns annotate .* machines.compute.ironcore.dev m .*give-up-missing/;
    expect(events.some((event) => told.test(event))).toBe(!row.isBelieved);
  });

  // promise: machines-ironcore/machine-ironcore-made-twice
  test('is given up once: the annotation of the Machine is removed before another one is requested', async () => {
    const given = machineOf(giveUp(new FakeClock()));
    const { client, store } = await look(given, { ...CASES[1]!, shown: shownAs('other') });

    expect(store.made).toBe(1);
    const removed = client.writes.filter(({ body }) =>
      JSON.stringify(body).includes(`"${GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION}":null`),
    );
    expect(removed).toHaveLength(1);
    expect(removed[0]?.body).toMatchObject({
      metadata: { annotations: { [CREATION_SENT_ANNOTATION]: expect.any(String) } },
    });
  });

  test.each(CASES)('and which $what: its deletion ends: $isBelieved', async (row) => {
    const it = await look(machineOf({}, {}, deletion), row);

    expect(hasFinalizer(it)).toBe(!row.isBelieved);
  });
});

describe('that a machine is told to go', () => {
  const notes = ({ client }: { client: MemoryClient }): unknown[] =>
    client.writes.flatMap(({ body }) => {
      const { metadata } = body as { readonly metadata?: { readonly annotations?: Record<string, unknown> } };
      return metadata?.annotations === undefined ? [] : [metadata.annotations[DELETION_SENT_ANNOTATION]];
    });
  function deleting(err?: Error, annotations = {}) {
    const found = world({
      ...machineOf(annotations, {}, deletion),
      status: { machineID: 'iri://1', state: 'Running' },
    });
    found.store.create(runtimeMachine({ labels: { [label]: 'uid-m' } }, { class: 'c' }));
    if (err !== undefined) found.deletions.push(err);
    return found;
  }
  const refused = new RuntimeError('DeleteMachine', 'FailedPrecondition', 'locked', { isMutation: true });
  const reset = new RuntimeError('DeleteMachine', 'Unavailable', 'reset', { isMutation: true });
  const fenced = new GateClosedError('fenced', undefined, 'closed');

  test('is written before, for whoever comes after this process, and after that it was accepted', async () => {
    const it = deleting();

    await it.pass();

    expect(it.log).toEqual(['machines/m/status', 'machines/m']);
    expect(notes(it)).toEqual(['sent uid-m', 'accepted uid-m']);
  });

  test('is not told if it cannot be written', async () => {
    const it = deleting();
    it.client.failures.push(undefined, new ApiError(403, 'Forbidden', 'no patch of machines'));

    await it.pass();

    expect(notes(it)[0]).toBe('sent uid-m');
    expect(it.store.all()).toHaveLength(1);
  });

  test('is not noted while its status cannot be written, so that what the runtime loses then is not taken for gone', async () => {
    const it = deleting();
    const patch = it.client.patch.bind(it.client);
    it.client.patch = async (...args) => {
      if (args[3].subresource === 'status') throw new ApiError(403, 'Forbidden', 'no patch of machines/status');
      return await patch(...args);
    };
    await it.pass();
    expect(it.store.all()).toHaveLength(1);
    it.client.patch = patch;
    it.store.setBack([]);
    it.it.connection = 1;

    await it.pass();
    it.clock.advance(MINUTE_MS);
    await it.pass();

    expect(hasFinalizer(it)).toBe(true);
  });

  test('is not known of a later deletion of a Machine that came back with a backup', async () => {
    const it = deleting();
    await it.pass();
    expect(notes(it)).toEqual(['sent uid-m', 'accepted uid-m']);
    const later = { deletionTimestamp: '2026-01-02T00:00:00Z', resourceVersion: '3' };
    const again = { ...machineOf({}, {}, later), status: { machineID: 'iri://2', state: 'Running' } };
    it.machines.put(again);
    it.client.put(ironCoreMachines, again);

    await it.pass();
    it.clock.advance(MINUTE_MS);
    await it.pass();

    expect(hasFinalizer(it)).toBe(true);
  });

  test('stays accepted when the runtime, which goes on showing it for a moment, says that it has none', async () => {
    const it = deleting();
    it.store.habits.deletesAtOnce = false;
    await it.pass();
    for (const { metadata } of it.store.all()) metadata.deletedAt = 0n;
    it.deletions.push(new RuntimeError('DeleteMachine', 'NotFound', 'none', { isMutation: true }));

    await it.pass();

    expect(notes(it)).toEqual(['sent uid-m', 'accepted uid-m']);
  });

  test.each([
    { err: refused, note: null },
    { err: fenced, note: null },
    { err: reset, note: 'unanswered uid-m' },
  ])('and that it is not known to go then: $err.message', async ({ err, note }) => {
    const it = deleting(err);

    await it.pass();

    expect(notes(it)).toEqual(['sent uid-m', note]);
    expect(it.store.all()).toHaveLength(1);
  });

  test.each([
    { connection: 0, ends: true },
    { connection: 1, ends: false },
  ])('and that the runtime had none then: it ends, by connection $connection: $ends', async ({ connection, ends }) => {
    const it = deleting(new RuntimeError('DeleteMachine', 'NotFound', 'none', { isMutation: true }));
    const [machine] = it.store.all();
    const machineID = `iri://${machine?.metadata.id}`;
    const known = { ...machineOf({}, {}, { ...deletion, resourceVersion: '2' }), status: { machineID } };
    it.machines.put(known);
    it.client.put(ironCoreMachines, known);
    // Not each second for ever, if the runtime goes on showing it.
    expect(await it.pass()).toBe(5_000);
    expect(notes(it)).toEqual(['sent uid-m', 'unanswered uid-m']);
    it.store.setBack([]);
    it.it.connection = connection;

    await it.pass();
    it.clock.advance(MINUTE_MS);
    await it.pass();

    expect(hasFinalizer(it)).toBe(!ends);
  });

  test.each([
    { err: reset, taken: [] },
    { err: refused, taken: [null] },
  ])('of what was accepted before only a refusal is written: $err.message', async ({ err, taken }) => {
    const it = deleting(err, noted('accepted'));

    await it.pass();

    expect(notes(it)).toEqual(taken);
  });

  test.each([
    { err: fenced, note: null },
    { err: reset, note: 'unanswered uid-m' },
  ])('what could not be written then is when the machine is not shown any more: $err.message', async (row) => {
    const it = deleting();
    it.client.failures.push(undefined, undefined, new ApiError(0, 'Unreachable', 'reset'));
    it.deletions.push(row.err);
    await it.pass();
    for (const { metadata } of it.store.all()) it.store.forget(metadata.id);
    it.it.connection = 1;

    await it.pass();
    it.clock.advance(MINUTE_MS);
    await it.pass();

    expect(notes(it).at(-1)).toEqual(row.note);
    expect(hasFinalizer(it)).toBe(true);
  });
});

describe('a Machine that is being deleted, whose machine was not shown to this process: its deletion ends', () => {
  const going = { machineID: 'iri://gone', state: 'Running' };

  test.each([
    { what: 'was told to go', note: noted('sent'), others: 0, ends: false },
    { what: 'was told to go, as another Machine says', note: noted('sent', 'uid-other'), others: 0, ends: false },
    { what: 'has accepted it', note: noted('accepted'), others: 0, ends: true },
    { what: 'has not answered', note: noted('unanswered'), others: 0, ends: false },
    { what: 'was told something else', note: noted('believed'), others: 0, ends: false },
    { what: 'was told nothing', note: {}, others: 0, ends: false },
    { what: 'was told to go, and does not show five others', note: noted('sent'), others: 5, ends: false },
    { what: 'has accepted it, and does not show five others', note: noted('accepted'), others: 5, ends: true },
  ])('$ends, when the runtime $what', async ({ note, others, ends }) => {
    const it = world({ ...machineOf(note, {}, deletion), status: going });
    for (let i = 0; i < others; i++)
      it.machines.put({ ...machineOf({}, {}, meta(`other-${i}`)), status: { machineID: `iri://other-${i}` } });

    await it.pass();
    it.clock.advance(MINUTE_MS);
    await it.pass();

    expect(hasFinalizer(it)).toBe(!ends);
    expect(it.events.some((event) => event.startsWith('MachinesLost'))).toBe(!ends);
  });

  const at = (time: string): string => `2026-01-01T${time}:00Z`;
  /** When its machine was made, and when another one was, of which its Machine tells. */
  const BESIDE = {
    note: 'sent',
    made: at('00:10'),
    other: at('00:30'),
    shown: ['third', 'other'],
    lost: 0,
    ends: false,
  };

  test.each([
    { ...BESIDE, what: 'shows one that was made while its was there', ends: true },
    { ...BESIDE, what: 'does not show that one', shown: ['third'] },
    { ...BESIDE, what: 'does not show six others', lost: 6 },
    { ...BESIDE, what: 'has not answered when it was asked', note: 'unanswered' },
    { ...BESIDE, what: 'shows one that is older', other: at('00:00') },
    { ...BESIDE, what: 'shows one that was made just after its', other: at('00:11') },
    { ...BESIDE, what: 'shows one that was made just before its was told to go', other: at('00:59') },
    { ...BESIDE, what: 'shows one that was made since', other: at('01:30') },
    { ...BESIDE, what: 'shows one of which it is not noted when it was made', other: '' },
    { ...BESIDE, what: 'shows one, and it is not noted when its was made', made: '' },
  ])('$ends, when the runtime was told to go by a process that has died, and $what', async (row) => {
    const sentAt = (time: string): Record<string, string> => (time === '' ? {} : { [CREATION_SENT_ANNOTATION]: time });
    const notes = { ...noted(row.note), ...sentAt(row.made) };
    const it = world({ ...machineOf(notes, {}, { deletionTimestamp: at('01:00') }), status: going });
    it.machines.put({ ...machineOf(sentAt(row.other), {}, meta('other')), status: { machineID: 'iri://other' } });
    it.machines.put({ ...machineOf({}, {}, meta('third')), status: { machineID: 'iri://third' } });
    for (let i = 0; i < row.lost; i++)
      it.machines.put({ ...machineOf({}, {}, meta(`lost-${i}`)), status: { machineID: `iri://lost-${i}` } });
    it.shown.push(...row.shown.map((id) => shownAs(id)));

    await it.pass();
    it.clock.advance(MINUTE_MS);
    await it.pass();

    expect(hasFinalizer(it)).toBe(!row.ends);
    expect(it.events.some((event) => event.startsWith('MachinesLost'))).toBe(!row.ends);
  });

  test('never, because its guest was shutting down when it was last shown', async () => {
    const it = world({ ...machineOf({}, {}, deletion), status: { ...going, state: 'Terminating' } });

    await it.pass();
    it.clock.advance(MINUTE_MS);
    await it.pass();

    expect(hasFinalizer(it)).toBe(true);
  });
});

describe('of ten deletions that the runtime has not answered those end whose machines are gone', () => {
  const CASES = [
    { what: 'on the connection that has shown them', connection: 0, survivor: undefined, ends: true },
    { what: 'while a younger machine is still shown by the next connection', connection: 1, survivor: 11n, ends: true },
    { what: 'not while only an older one is', connection: 1, survivor: 9n, ends: false },
    { what: 'not when the next connection shows none', connection: 1, survivor: undefined, ends: false },
  ];

  test.each(CASES)('$what', async ({ connection, survivor, ends }) => {
    const it = world(machineOf());
    const names = Array.from({ length: 10 }, (_, i) => `m-${i}`);
    for (const name of names) {
      const machine = machineOf(noted('unanswered', `uid-${name}`), {}, { ...meta(name), ...deletion });
      it.machines.put({ ...machine, status: { machineID: `iri://id-${name}` } });
    }
    const shown = names.map((name) => shownAs(`id-${name}`, { createdAt: 10n, labels: { [label]: `uid-${name}` } }));
    const beside = survivor === undefined ? [] : [shownAs('survivor', { createdAt: survivor })];
    it.sightings.saw('p', { machines: [...shown, ...beside], connection: 0 });
    it.it.connection = connection;
    it.shown.push(...beside);

    for (const name of names) await it.pass(name);
    it.clock.advance(MINUTE_MS);
    for (const name of names) await it.pass(name);

    expect(names.filter((name) => hasFinalizer(it, name))).toHaveLength(ends ? 0 : 10);
    const told =
      /^MachinesLost: The runtime was asked to delete iri:\/\/id-m-\d, and has not answered; .* does not list 10 of 1\d machines of .*Waiting for it to list this one, .*-n ns annotate .* m-\d .*give-up/;
    expect(it.events.filter((event) => told.test(event))).toHaveLength(ends ? 0 : 10);
  });
});

describe('of a pool whose runtime does not show so many machines', () => {
  const CASES = [
    { lost: 1, shown: 0, isBelieved: true },
    { lost: 2, shown: 0, isBelieved: false },
    { lost: 5, shown: 1, isBelieved: true },
    { lost: 6, shown: 1, isBelieved: false },
  ];

  /** Machine `m` and others have lost theirs; one was told to go, so that it is not missed. */
  async function lose(lost: number, shown: number, own: object = {}, machine = machineOf()) {
    const it = world({ ...machine, status: { machineID: 'iri://gone-0' } });
    const { machines, store, sightings } = it;
    sightings.saw('p', { machines: [shownAs('gone-0')], connection: 0 });
    for (let i = 1; i < lost; i++)
      machines.put({
        ...machineOf({}, {}, { ...meta(`other-${i}`), ...own }),
        status: { machineID: `iri://gone-${i}` },
      });
    for (let i = 0; i < shown; i++) {
      const { id } = store.create(runtimeMachine({}, { class: 'c' })).metadata;
      machines.put({ ...machineOf({}, {}, meta(`there-${i}`)), status: { machineID: `iri://${id}` } });
    }
    const going = machineOf(noted('accepted', 'uid-going'), {}, { ...meta('going'), ...deletion });
    machines.put({ ...going, status: { machineID: 'iri://gone' } });
    await it.pass();
    it.clock.advance(MINUTE_MS);
    await it.pass();
    return it;
  }

  test.each(CASES)(
    'lost $lost, shown $shown: one is created anew: $isBelieved',
    async ({ lost, shown, isBelieved }) => {
      const { store, events } = await lose(lost, shown);

      expect(store.made - shown).toBe(isBelieved ? 1 : 0);
      expect(events.some((event) => event.startsWith('MachinesLost'))).toBe(!isBelieved);
    },
  );

  // promise: machines-ironcore/machine-ironcore-runtime-show
  test.each(CASES)('lost $lost, shown $shown: a deletion ends: $isBelieved', async ({ lost, shown, isBelieved }) => {
    const it = await lose(lost, shown, deletion, machineOf({}, {}, deletion));

    expect(hasFinalizer(it)).toBe(!isBelieved);
    expect(it.events.some((event) => event.startsWith('MachinesLost'))).toBe(!isBelieved);
  });

  const minutes = async (it: Awaited<ReturnType<typeof lose>>, count: number): Promise<void> => {
    for (let i = 0; i < 2 * count; i++) {
      it.clock.advance(MINUTE_MS / 2);
      it.machines.put(await it.client.get(ironCoreMachines, { namespace: 'ns', name: 'm' }));
      await it.pass();
    }
  };

  // Such as all machines of a node of the provider that is drained, behind a broker.
  test.each(CASES)(
    'lost $lost, shown $shown, by the connection that has shown this one: one is created anew after two minutes at the latest',
    async ({ lost, shown }) => {
      const it = await lose(lost, shown);

      await minutes(it, 2);

      expect(it.store.made - shown).toBe(1);
    },
  );

  test('lost 6 by another connection: none is ever created anew, and none is said to run', async () => {
    const it = await lose(6, 0);
    it.it.connection = 1;
    it.sightings.saw('p', { machines: [], connection: 1 });

    await minutes(it, 30);

    expect(it.store.made).toBe(0);
    expect((await it.client.get(ironCoreMachines, { namespace: 'ns', name: 'm' })).status).toMatchObject({
      state: 'Pending',
      conditions: expect.arrayContaining([
        expect.objectContaining({ type: 'Ready', status: 'False', reason: 'MachinesLost' }),
      ]),
    });
  });

  test('that are shown again in time: what was missing counts anew the next time', async () => {
    const it = await lose(6, 0);
    const { id } = it.store.create(runtimeMachine({ labels: { [label]: 'uid-m' } }, { class: 'c' })).metadata;
    await it.pass();
    it.store.forget(id);
    it.clock.advance(MINUTE_MS);

    await it.pass();
    it.clock.advance(MINUTE_MS / 2);
    expect(await it.pass()).toBeGreaterThan(0);

    expect(it.store.made).toBe(1);
  });

  test('those that were seen going are gone, however many they are, whatever the connection', async () => {
    const it = world({ ...machineOf(), status: { machineID: 'iri://gone-0', state: 'Running' } });
    const all = Array.from({ length: 8 }, (_, i) => shownAs(`gone-${i}`, { deletedAt: 1n }));
    for (let i = 1; i < 8; i++)
      it.machines.put({ ...machineOf({}, {}, meta(`other-${i}`)), status: { machineID: `iri://gone-${i}` } });
    it.sightings.saw('p', { machines: all, connection: 0 });
    it.it.connection = 1;

    await it.pass();
    it.clock.advance(5_000);
    await it.pass();

    expect(it.store.made).toBe(1);
    expect(it.events.some((event) => event.startsWith('MachinesLost'))).toBe(false);
  });

  test('one list is enough for all that are held, which are looked at ever less often', async () => {
    const it = world({ ...machineOf(), status: { machineID: 'iri://gone-0' } });
    const names = ['m', ...Array.from({ length: 9 }, (_, i) => `other-${i}`)];
    for (const [i, name] of names.entries())
      it.machines.put({
        ...machineOf({}, {}, { ...meta(name), resourceVersion: '2' }),
        status: { machineID: `iri://gone-${i}` },
      });
    for (const name of names) await it.pass(name);
    it.clock.advance(MINUTE_MS);

    await Promise.all(names.map((name) => it.pass(name)));

    expect(it.lists()).toBe(1);
    const waits: unknown[] = [];
    for (let i = 0; i < 5; i++) {
      it.clock.advance(MINUTE_MS);
      waits.push(await it.pass());
    }
    expect(waits).toEqual([10_000, 20_000, 40_000, 60_000, 60_000]);
  });

  test('that are seen again: one that is still missing is looked for anew before its deletion ends', async () => {
    const it = await lose(2, 0, {}, machineOf({}, {}, deletion));
    expect(hasFinalizer(it)).toBe(true);
    // As long as those that are held for a while are left alone.
    it.clock.advance(MINUTE_MS);
    const { id } = it.store.create(runtimeMachine({}, { class: 'c' })).metadata;
    it.machines.put({
      ...machineOf({}, {}, { ...meta('other-1'), resourceVersion: '2' }),
      status: { machineID: `iri://${id}` },
    });

    await it.pass();
    it.clock.advance(29_999);
    await it.pass();
    expect(hasFinalizer(it)).toBe(true);

    it.clock.advance(1);
    await it.pass();
    expect(hasFinalizer(it)).toBe(false);
  });

  test.each(['the Machine', 'the MachinePool'])('%s allows to give them up for a while', async (what) => {
    const machine = { ...machineOf({}, {}, deletion), status: { machineID: 'iri://gone-0' } };
    const annotations = giveUp(new FakeClock());
    const pool = { metadata: { ...meta('p'), namespace: '', ...(what === 'the MachinePool' && { annotations }) } };
    if (what === 'the Machine') Object.assign(machine.metadata, { annotations });
    const it = world(machine, [], pool);
    it.machines.put({ ...machineOf({}, {}, { ...meta('other'), ...deletion }), status: { machineID: 'iri://gone-1' } });

    await it.pass();
    it.clock.advance(MINUTE_MS);
    await it.pass();

    expect(hasFinalizer(it)).toBe(false);
  });
});

test('of many Machines that are deleted at once each goes, when it was told to go by this process or the one before', async () => {
  const it = world(machineOf());
  const { store, machines, client, pass } = it;
  const names = Array.from({ length: 8 }, (_, i) => `m-${i}`);
  for (const name of names) {
    const labels = { 'machinepoollet.ironcore.dev/machine-uid': `uid-${name}` };
    const { id } = store.create(runtimeMachine({ labels }, { class: 'c' })).metadata;
    machines.put({ ...machineOf({}, {}, { ...meta(name), ...deletion }), status: { machineID: `iri://${id}` } });
  }
  for (const i of [1, 2, 3]) {
    const name = `before-${i}`;
    const machine = machineOf(noted('accepted', `uid-${name}`), {}, { ...meta(name), ...deletion });
    machines.put({ ...machine, status: { machineID: `iri://${name}` } });
    names.push(name);
  }

  for (const name of names) await pass(name);
  expect(store.all()).toEqual([]);
  it.clock.advance(5_000);
  for (const name of names) await pass(name);

  expect(names.filter((name) => hasFinalizer(it, name))).toEqual([]);
  expect(client.writes.map(({ body }) => JSON.stringify(body)).filter((body) => body.includes('MachinesLost'))).toEqual(
    [],
  );
});

describe('a Machine whose machine another runtime has than the one that answers', () => {
  test.each(['alive', 'being deleted'])('that is %s is kept as it is, and says so', async (what) => {
    const metadata = what === 'alive' ? {} : deletion;
    const it = world({ ...machineOf({}, {}, metadata), status: { machineID: 'other://7' } });

    await it.pass();
    it.clock.advance(MINUTE_MS);
    await it.pass();

    expect([it.store.made, hasFinalizer(it)]).toEqual([0, true]);
    expect(it.events[0]).toMatch(
      /^WrongRuntime: MachinePool p is served by runtime iri, .* runtime other .*other:\/\/7/,
    );
    expect(it.poolEvents).toEqual([
      expect.stringMatching(/^WrongRuntime: .* served by runtime iri, .*give-up-missing-machines-until/),
    ]);
  });

  test('goes on when it is given up', async () => {
    const machine = machineOf(giveUp(new FakeClock()), {}, deletion);
    const it = world({ ...machine, status: { machineID: 'other://7' } });

    await it.pass();
    it.clock.advance(MINUTE_MS);
    await it.pass();

    expect(hasFinalizer(it)).toBe(false);
  });

  test('is that of the one that answers, if that shows its machine by its label', async () => {
    const it = world({ ...machineOf({}, {}, deletion), status: { machineID: 'other://7' } });
    const labels = { 'machinepoollet.ironcore.dev/machine-uid': 'uid-m' };
    it.store.create(runtimeMachine({ labels }, { class: 'c' }));

    await it.pass();

    expect(it.store.all()).toEqual([]);
  });
});

describe('a machine that lost the label with the UID of its Machine', () => {
  const known = (store: MachineStore, labels: Record<string, string>): { id: string; machine: IronCoreMachine } => {
    const { id } = store.create(runtimeMachine({ labels }, { class: 'c' })).metadata;
    return { id, machine: { ...machineOf(), status: { machineID: `iri://${id}` } } };
  };

  test.each([
    { what: 'is found by its id, and no other one is made', labels: {}, scheme: 'iri', made: 1 },
    { what: 'of another Machine is not taken', labels: { [label]: 'uid-other' }, scheme: 'iri', made: 2 },
    { what: 'of another runtime is not taken, and none is made', labels: {}, scheme: 'other', made: 1 },
  ])('$what', async ({ labels, scheme, made }) => {
    const { clock, store, machines, pass } = world(machineOf());
    const { id, machine } = known(store, labels);
    machines.put({
      ...machine,
      metadata: { ...machine.metadata, resourceVersion: '2' },
      status: { machineID: `${scheme}://${id}` },
    });

    await pass();
    clock.advance(MINUTE_MS);
    await pass();

    expect(store.made).toBe(made);
  });

  test('goes with its Machine', async () => {
    const { store, machines, pass } = world(machineOf());
    const { machine } = known(store, {});
    const deletionTimestamp = '2026-01-01T00:00:00Z';
    machines.put({ ...machine, metadata: { ...machine.metadata, deletionTimestamp, resourceVersion: '2' } });

    await pass();

    expect(store.all()).toEqual([]);
  });
});

test('a Machine of a pool that somebody else serves is not touched', async () => {
  const { store, client, pass, isServed } = world(machineOf({}, {}, { finalizers: [] }));
  isServed.now = false;

  await pass();

  expect(client.writes).toEqual([]);
  isServed.now = true;
  await pass();
  expect(client.writes).toHaveLength(1);
  expect(store.made).toBe(0);
});

test('nothing is claimed or made before it is known what machines without a Machine use', async () => {
  const { clock, store, client, pass, rivals } = world(machineOf());
  rivals.forget('p');

  await pass();
  expect([store.made, client.writes]).toEqual([0, []]);

  rivals.saw('p', undefined, []);
  clock.advance(1_000);
  await pass();
  expect(store.made).toBe(1);
});

describe('a machine says which of its own generations has the spec', () => {
  const generation = 'machinepoollet.ironcore.dev/irimachine-generation';
  const run = async (before: string) => {
    const it = world(machineOf({}, { power: 'Off' }));
    it.store.habits.observesAtOnce = false;
    const { metadata } = it.store.create(
      runtimeMachine(
        { labels: { [label]: 'uid-m' }, annotations: { other: 'x', [generation]: before } },
        { class: 'c' },
      ),
    );
    await it.pass();
    return { it, id: metadata.id };
  };

  test('of which the API server counts none, when it was switched', async () => {
    const { it, id } = await run('0');

    const { metadata } = it.store.get(id);
    expect(metadata.annotations).toMatchObject({ other: 'x', [generation]: String(metadata.generation) });
    expect(metadata.generation).toBe(2n);
  });

  test('and what it is like is not shown before that generation was observed', async () => {
    const { it, id } = await run('0');
    const stateOf = async () => (await it.client.get(ironCoreMachines, { namespace: 'ns', name: 'm' })).status?.state;
    expect(await stateOf()).toBe('Pending');

    it.machines.put(await it.client.get(ironCoreMachines, { namespace: 'ns', name: 'm' }));
    it.store.get(id).status.observedGeneration = 2n;
    await it.pass();

    expect(await stateOf()).toBe('Shutdown');
  });
});

describe('a Machine that waits', () => {
  const ofSecret = { ignitionRef: { name: 'ignition' } };

  test('asks its runtime for no machine and is looked at ever less often, until it waits for something else', async () => {
    const { clock, store, client, pass, asked } = world(machineOf({}, ofSecret));

    const afterMs: unknown[] = [];
    for (let i = 0; i < 6; i++) {
      afterMs.push(await pass());
      clock.advance(60_000);
    }
    expect(afterMs).toEqual([5_000, 10_000, 20_000, 40_000, 60_000, 60_000]);
    expect(asked.lists).toBe(0);

    client.put(secrets, { metadata: meta('ignition') });
    expect(await pass()).toBe(5_000);
    const complete = { metadata: { ...meta('ignition'), resourceVersion: '2' }, data: { 'ignition.yaml': 'eA==' } };
    client.put(secrets, complete);
    await pass();
    expect(store.made).toBe(1);
  });

  test('asks for the classes of its runtime once in ten seconds, and at once after that has failed', async () => {
    const { clock, troubles, pass, asked } = world(machineOf({}, ofSecret));
    troubles.push(new RuntimeError('Status', 'Unavailable', 'reset', { isMutation: false }));
    await pass();
    await pass();
    expect(asked.classes).toBe(2);

    troubles.length = 0;
    await pass();
    clock.advance(9_999);
    await pass();
    expect(asked.classes).toBe(3);
    clock.advance(1);
    await pass();
    expect(asked.classes).toBe(4);
  });

  test('of a class that its runtime does not have is looked at each ten seconds at the latest: nothing tells of that', async () => {
    const { classes, pass } = world(machineOf());
    classes.length = 0;

    const afterMs: unknown[] = [];
    for (let i = 0; i < 4; i++) afterMs.push(await pass());

    expect(afterMs).toEqual([5_000, 10_000, 10_000, 10_000]);
  });

  test.each([
    { what: 'a machine was seen', machine: machineOf({}, ofSecret), isSeen: true, isLooked: true },
    {
      what: 'a creation was sent',
      machine: machineOf({ [CREATION_SENT_ANNOTATION]: 'then' }, ofSecret),
      isSeen: false,
      isLooked: true,
    },
    {
      what: 'it has a machine',
      machine: { ...machineOf({}, ofSecret), status: { machineID: 'iri://gone' } },
      isSeen: false,
      isLooked: true,
    },
    { what: 'nothing was ever made', machine: machineOf({}, ofSecret), isSeen: false, isLooked: false },
  ])('for which $what is looked for at its runtime: $isLooked', async ({ machine, isSeen, isLooked }) => {
    const { pass, sightings, asked } = world(machine);
    if (isSeen) sightings.saw('p', { machines: [shownAs('gone', { labels: { [label]: 'uid-m' } })], connection: 0 });

    await pass();

    expect(asked.lists > 0).toBe(isLooked);
  });
});

describe('what of the spec has no effect', () => {
  const volume = (image?: string): IronCoreVolume => ({
    metadata: meta('v'),
    spec: { claimRef: { name: 'm', uid: 'uid-m' }, ...(image !== undefined && { dataSource: { osImage: { image } } }) },
    status: { state: 'Available', access: { driver: 'd', handle: 'h' } },
  });
  const spec = { image: 'os', volumes: [{ name: 'root', device: 'oda', volumeRef: { name: 'v' } }] };

  test.each([
    { what: 'without an image', image: undefined, told: 1 },
    { what: 'with another image', image: 'another', told: 1 },
    { what: 'with the image', image: 'os', told: 0 },
  ])('is told when a machine is made whose root disk is a Volume $what: $told', async ({ image, told }) => {
    const { store, pass, events } = world(machineOf({}, spec), [volume(image)]);

    await pass();

    expect(store.made).toBe(1);
    expect(events.filter((one) => one.startsWith('ImageNotUsed: spec.image os '))).toHaveLength(told);
  });
});

describe('while another cluster claims machines of the pool', () => {
  const claim = 'machine.sapcloud.io/claim';
  const add = (store: MachineStore, annotations: Record<string, string> = {}): RuntimeMachine =>
    store.create(runtimeMachine({ labels: { [label]: 'uid-m' }, annotations }, { class: 'c', power: Power.POWER_OFF }));
  const foreign = shownAs('other', { annotations: { [claim]: 'you:1' } });
  const readyOf = async ({ client }: ReturnType<typeof world>) =>
    (await client.get(ironCoreMachines, { namespace: 'ns', name: 'm' })).status?.conditions?.find(
      ({ type }) => type === 'Ready',
    );

  test('no machine is made, and it is looked at ever more rarely', async () => {
    const it = world(machineOf());
    it.rivals.saw('p', undefined, [foreign]);

    expect([await it.pass(), await it.pass(), await it.pass()]).toEqual([5_000, 10_000, 20_000]);

    expect(it.store.made).toBe(0);
    expect(await readyOf(it)).toMatchObject({ status: 'False', reason: 'ClaimedByAnother' });
    it.rivals.saw('p', undefined, []);
    it.clock.advance(30_000);
    await it.pass();
    expect(it.store.made).toBe(1);
    expect(it.store.all()[0]?.metadata.annotations[claim]).toBe('me:1');
  });

  test('one that is there is left as it is, with its state', async () => {
    const it = world(machineOf());
    const { metadata } = add(it.store);
    it.store.setState(metadata.id, MachineState.MACHINE_RUNNING);
    it.rivals.saw('p', undefined, [foreign]);

    await it.pass();

    expect(it.store.get(metadata.id).spec.power).toBe(Power.POWER_OFF);
    expect(await readyOf(it)).toMatchObject({ status: 'Unknown', reason: 'ClaimedByAnother' });
    expect((await it.client.get(ironCoreMachines, { namespace: 'ns', name: 'm' })).status?.state).toBe('Running');
  });

  test('one that says so itself is left as it is, before all are looked at again', async () => {
    const it = world(machineOf());
    const { metadata } = add(it.store, { [claim]: 'me:2' });

    await it.pass();

    expect(it.store.get(metadata.id).spec.power).toBe(Power.POWER_OFF);
    expect(await readyOf(it)).toMatchObject({ status: 'Unknown', reason: 'ClaimedByAnother' });
  });

  test.each([
    { what: 'claimed by another', look: (rivals: Rivals) => rivals.saw('p', undefined, [foreign]) },
    { what: 'not looked at yet', look: (rivals: Rivals) => rivals.forget('p') },
  ])('a deletion waits, and so does one of a pool that was $what', async ({ look }) => {
    const it = world(machineOf({}, {}, { deletionTimestamp: '2026-01-01T00:00:00Z' }));
    add(it.store);
    look(it.rivals);

    await it.pass();
    expect(it.store.all()).toMatchObject([{ metadata: { deletedAt: 0n } }]);

    it.rivals.saw('p', undefined, []);
    await it.pass();
    expect(it.store.all()).not.toMatchObject([{ metadata: { deletedAt: 0n } }]);
  });
});

describe('what a late cache would have done to a machine is not done', () => {
  const add = (store: MachineStore, power = Power.POWER_ON): string =>
    store.create(runtimeMachine({ labels: { [label]: 'uid-m' } }, { class: 'c', power })).metadata.id;

  // IronCore's own API server counts no generations of Machines.
  test.each([
    { live: 'Off', power: Power.POWER_OFF },
    { live: 'On', power: Power.POWER_ON },
  ] as const)('it has power $power where the cache says Off and the API server says $live', async ({ live, power }) => {
    const { store, client, pass } = world(machineOf({}, { power: 'Off' }));
    client.put(ironCoreMachines, machineOf({}, { power: live }, { resourceVersion: '2' }));
    const id = add(store);

    await pass();

    expect(store.get(id).spec.power).toBe(power);
  });

  test.each([
    { live: 'younger', left: 1 },
    { live: 'older', left: 2 },
  ])(
    'of two machines, of which the Machine has the $live and the cache says the younger, so many are left: $left',
    async ({ live, left }) => {
      const { store, client, machines, pass } = world(machineOf());
      const ids = { older: add(store), younger: add(store) };
      const having = (id: string | undefined): IronCoreMachine => ({
        ...machineOf({}, {}, { resourceVersion: '2' }),
        status: { machineID: `iri://${id}` },
      });
      machines.put(having(ids.younger));
      client.put(ironCoreMachines, having(live === 'older' ? ids.older : ids.younger));

      await pass();

      expect(store.all()).toHaveLength(left);
      expect(store.get(ids.younger)).toBeDefined();
    },
  );
});

test('a Machine that waits because the runtime does not say which machines it has tells why', async () => {
  const { store, pass, keptUses, rivals, events } = world(machineOf());
  rivals.forget('p');
  keptUses.failed('p', 'ListMachines: Internal: machine 7 has no spec');

  await pass();

  expect(store.made).toBe(0);
  expect(events).toEqual([expect.stringMatching(/^RuntimeUnreachable: MachinePool p: .*machine 7 has no spec$/)]);
});

describe('a Volume that was claimed without a note of the pool', () => {
  const claimed: IronCoreVolume = {
    metadata: meta('data'),
    spec: { claimRef: { name: 'm', uid: 'uid-m' } },
    status: { state: 'Available', access: { driver: 'ceph', handle: 'h' } },
  };
  const volumes = [{ name: 'data', device: 'oda', volumeRef: { name: 'data' } }];

  test('gets it', async () => {
    const { client, pass } = world(machineOf({}, { volumes }), [claimed]);

    await pass();

    expect(client.writes[0]).toMatchObject({
      what: 'volumes/data',
      resourceVersion: '1',
      body: { metadata: { annotations: { 'machine.sapcloud.io/claimed-for-pool': 'p' } } },
    });
  });

  test('holds up nothing when that is refused, which is told', async () => {
    const { client, store, pass, events } = world(machineOf({}, { volumes }), [claimed]);
    client.failures.push(new ApiError(403, 'Forbidden', 'no patch of volumes'));

    await pass();

    expect(store.made).toBe(1);
    expect(events[0]).toMatch(/^ApiServerRefused: .*no patch of volumes/);
  });
});

describe('what the API server refuses', () => {
  const refusal = new ApiError(422, 'Invalid', 'admission webhook "guard" denied the request: hands off');
  const going = { deletionTimestamp: '2026-01-01T00:00:00Z' };

  test('of a Machine that is going is told by its condition and an Event, with the words and what helps', async () => {
    const { client, pass, events } = world(machineOf({}, {}, going));
    client.failures.push(refusal);

    await pass();

    const status = JSON.stringify(client.writes.at(-1)?.body);
    expect(status).toContain('"reason":"ApiServerRefused"');
    expect(events).toEqual([
      expect.stringMatching(/^ApiServerRefused: .*denied the request: hands off\. .*ironcore-machines\.yaml.*webhook/),
    ]);
  });

  test('is told by an Event where the status is refused, too', async () => {
    const { client, pass, events } = world(machineOf({}, {}, { finalizers: [] }));
    client.failures.push(refusal, refusal);

    await pass();

    expect(events).toEqual([expect.stringMatching(/^ApiServerRefused: /)]);
  });

  test('makes no Machine unready that has its machine', async () => {
    const machine = machineOf({}, {}, { finalizers: [] });
    const { client, pass, events } = world({ ...machine, status: { machineID: 'iri://1' } });
    client.failures.push(refusal);

    await pass();

    expect(events).toEqual([expect.stringMatching(/^ApiServerRefused: /)]);
    expect(JSON.stringify(client.writes)).not.toContain('"conditions"');
  });

  test('is nothing that a conflict is', async () => {
    const { client, pass, events } = world(machineOf({}, {}, going));
    client.failures.push(new ApiError(409, 'Conflict', 'changed'));

    await pass();

    expect(events).toEqual([]);
  });
});

describe('a Machine whose runtime', () => {
  const locked = new RuntimeError('UpdateMachinePower', 'FailedPrecondition', 'locked', { isMutation: true });
  const reset = new RuntimeError('UpdateMachinePower', 'Unavailable', 'reset', { isMutation: true });
  const away = new RuntimeError('ListMachines', 'Unavailable', 'reset', { isMutation: false });
  const garbage = new RuntimeError('ListMachines', 'Internal', 'garbage', { isMutation: false });

  test.each([
    { what: 'cannot be reached', err: away, has: true, ready: 'Unknown RuntimeUnreachable' },
    { what: 'answers garbage', err: garbage, has: true, ready: 'Unknown RuntimeRefused' },
    { what: 'refuses a change', err: locked, has: true, ready: 'True RuntimeRefused' },
    { what: 'was lost during a change', err: reset, has: true, ready: 'Unknown RuntimeUnreachable' },
    { what: 'cannot be reached, and has no machine yet', err: away, has: false, ready: 'False RuntimeUnreachable' },
  ])('$what is $ready', async ({ err, has, ready }) => {
    const machine = machineOf({}, { power: 'Off' });
    const it = world(has ? { ...machine, status: { machineID: 'iri://7', state: 'Running' } } : machine);
    const labels = { 'machinepoollet.ironcore.dev/machine-uid': 'uid-m' };
    if (has) it.store.create(runtimeMachine({ labels }, { class: 'c' }));
    it.troubles.push(err);

    await it.pass();

    const [status] = it.client.writes.slice(-1).map(({ body }) => (body as { status: IronCoreMachineStatus }).status);
    const told = status?.conditions?.find(({ type }) => type === 'Ready');
    expect(`${told?.status} ${told?.reason}`).toBe(ready);
    expect(status?.state ?? 'Running').toBe(has ? 'Running' : 'Pending');
    expect(it.events).toEqual([expect.stringContaining(`: MachinePool p: ${err.message}`)]);
  });

  test('refuses a change of a machine that has stopped shows it as stopped', async () => {
    const it = world({ ...machineOf({}, { power: 'Off' }), status: { machineID: 'iri://1', state: 'Running' } });
    const labels = { 'machinepoollet.ironcore.dev/machine-uid': 'uid-m' };
    const { status } = it.store.create(runtimeMachine({ labels }, { class: 'c' }));
    status.state = MachineState.MACHINE_SUSPENDED;
    it.troubles.push(locked);

    await it.pass();

    expect(it.client.writes.map(({ body }) => body)).toMatchObject([
      { status: { state: 'Shutdown', conditions: [{ status: 'False', reason: 'RuntimeRefused' }, {}, {}] } },
    ]);
  });

  test('refuses a volume has it switched off all the same', async () => {
    const volumes = [{ name: 'v', device: 'odb', localDisk: { sizeLimit: '1Gi' } }];
    const it = world({
      ...machineOf({}, { power: 'Off', volumes }),
      status: { machineID: 'iri://1', state: 'Running' },
    });
    const labels = { 'machinepoollet.ironcore.dev/machine-uid': 'uid-m' };
    const machine = it.store.create(runtimeMachine({ labels }, { class: 'c' }));
    const refused = new RuntimeError('AttachVolume', 'InvalidArgument', 'no such driver', { isMutation: true });
    it.attachments.push(refused);

    await it.pass();

    expect(machine.spec.power).toBe(Power.POWER_OFF);
    expect(it.events).toEqual([expect.stringContaining(refused.message)]);
  });

  test('refuses to create a machine anew has none that is ready', async () => {
    const it = world({ ...machineOf(), status: { machineID: 'iri://gone', state: 'Running' } });
    it.sightings.saw('p', { machines: [shownAs('gone')], connection: 0 });
    it.refusals.push(new RuntimeError('CreateMachine', 'ResourceExhausted', 'full', { isMutation: true }));
    await it.pass();
    it.clock.advance(MINUTE_MS);

    await it.pass();

    const { status } = await it.client.get(ironCoreMachines, { namespace: 'ns', name: 'm' });
    expect(status?.machineID).toBe('');
    expect(status?.conditions?.[0]).toMatchObject({ type: 'Ready', status: 'False', reason: 'RuntimeRefused' });
  });
});

test.each([
  { metadata: {}, told: false },
  { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' }, told: true },
  { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['other'] }, told: false },
])('a Machine that somebody else manages is let alone; told that its deletion waits for them: $told', async (row) => {
  const { store, client, pass, events } = world(
    machineOf({ 'common.ironcore.dev/managed-by': 'me' }, {}, row.metadata),
  );

  await pass();

  expect([store.made, client.writes]).toEqual([0, []]);
  const want =
    /^ManagedByAnother: .*managed-by=me.*machinepoollet.ironcore.dev\/machine is not removed. .*remove the annotation/;
  expect(events.map((event) => want.test(event))).toEqual(row.told ? [true] : []);
});

const FILTER = 'common.ironcore.dev/watch-filter';

test.each([
  { title: 'with the label', metadata: { labels: { [FILTER]: 'blue' } }, made: 1, told: [] },
  { title: 'without the label', metadata: {}, made: 0, told: [] },
  { title: 'with another value', metadata: { labels: { [FILTER]: 'green' } }, made: 0, told: [] },
  {
    title: 'without the label that is being deleted',
    metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' },
    made: 0,
    told: [
      expect.stringMatching(
        /^ManagedByAnother: .*does not have label common\.ironcore\.dev\/watch-filter=blue .*finalizer .* is not removed\. .*set the label/,
      ),
    ],
  },
])('with a watch filter, of a Machine $title machines are made: $made', async ({ metadata, made, told }) => {
  const it = world(machineOf({}, {}, metadata), [], undefined, { watchFilter: 'blue' });

  await it.pass();

  expect(it.store.made).toBe(made);
  expect(it.events.filter((event) => !event.startsWith('Created: '))).toEqual(told);
  expect(it.client.writes.length > 0).toBe(made > 0);
});

test('what the downward API names is a label of the machine for good, and an annotation that follows the Machine', async () => {
  const field = { field: 'labels', key: 'team' } as const;
  const fields = new Map([['team', field]]);
  const downwardAPI = { ...NO_DOWNWARD_API, machineLabels: fields, machineAnnotations: fields };
  const it = world(machineOf({}, {}, { labels: { team: 'a' } }), [], undefined, { downwardAPI });
  const shown = () => it.store.list({ id: '', labelSelector: {} }).map(({ metadata }) => metadata);
  const name = 'downward-api.machinepoollet.ironcore.dev/team';

  await it.pass();
  expect(shown()).toMatchObject([{ labels: { [name]: 'a' }, annotations: { [name]: 'a' } }]);

  const machine = await it.client.get(ironCoreMachines, { namespace: 'ns', name: 'm' });
  it.machines.put({ ...machine, metadata: { ...machine.metadata, labels: { team: 'b' } } });
  await it.pass();
  expect(shown()).toMatchObject([{ labels: { [name]: 'a' }, annotations: { [name]: 'b' } }]);
});
