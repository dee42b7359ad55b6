import { describe, expect, test } from '@jest/globals';

import { MINUTE, SECOND } from '../../../../test/durations.ts';
import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import type { Node } from '../../../apis/wire.ts';
import { toTimestamp } from '../../../base/clock/clock.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { replacementHold } from '../../machine-facts/replacement-held-condition.ts';
import { explain } from '../explain/explain.ts';
import {
  START,
  EARLIER,
  KEPT,
  START_MS,
  SILENT,
  readySince,
  reasonShown,
  Zone,
  numbered,
  silentZone,
  told,
} from '../../../../test/fakes/zone.ts';

describe('Nodes of a zone that were deleted while they were not ready', () => {
  test('take their machines along one by one when a part of the zone has recovered', async () => {
    const { zone, names } = silentZone(11, 20);
    await zone.sweep(names);
    expect(zone.deleted).toEqual([]);

    for (const name of ['m-10', 'm-11'])
      zone.say(name, readySince(toTimestamp(zone.world.clock.now())), { isDeleted: false });
    await zone.sweep(names);
    await zone.sweep(names);
    expect(zone.deleted).toEqual(['m-1']);
    expect(explain(zone.get('m-2'), 0)).toMatchObject({ reason: 'ReplacementPaced' });

    zone.world.clock.advance(10 * MINUTE);
    await zone.sweep(names);
    await zone.sweep(names);
    expect(zone.deleted).toEqual(['m-1', 'm-2']);
  });

  test.each([
    { clock: 'that is right', since: undefined },
    { clock: 'that is behind', since: EARLIER },
  ])('take them along one by one when all are ready again, by a clock $clock, and work', async ({ since }) => {
    const { zone, names } = silentZone(11, 20);
    await zone.sweep(names);
    for (const name of names.slice(0, 11)) zone.say(name, readySince(since ?? toTimestamp(zone.world.clock.now())));
    const passes = [...(await zone.sweep(names)), ...(await zone.sweep(names))];
    zone.world.clock.advance(MINUTE);
    passes.push(...(await zone.sweep(names)));
    // The first whose pass found less than half of the zone Unknown.
    expect([zone.phase, zone.deleted]).toEqual(['Running', ['m-3']]);
    expect(told(passes).filter((one) => /was deleted while it(s machine)? was not/.test(one))).toHaveLength(10);
    expect(replacementHold([zone.get()])).toBeUndefined();
    const atRest = await zone.sweep(names);
    expect(atRest.flatMap(({ writes, events }) => [...writes, ...events])).toEqual([]);

    zone.world.clock.advance(10 * MINUTE);
    await zone.sweep(names);
    expect(zone.deleted).toEqual(['m-3', 'm-1']);
  });

  test.each([
    { maxReplacements: '0', count: 0, reason: 'ReplacementStopped' },
    { maxReplacements: '3', count: 3, reason: 'ReplacementPaced' },
  ])('take as many along within a health timeout as max-replacements allows: $maxReplacements', async (row) => {
    const { zone, names } = silentZone(6, 20, row.maxReplacements);
    for (let i = 0; i < 8; i++) {
      await zone.sweep(names);
      zone.world.clock.advance(MINUTE);
    }

    expect(zone.deleted).toHaveLength(row.count);
    expect(explain(zone.get('m-6'), 0)).toMatchObject({ reason: row.reason });
  });

  test('take them along one by one also where no MachineSet replaces them', async () => {
    const { zone, names } = silentZone(9, 20);
    for (const name of names) {
      const { metadata, ...rest } = zone.get(name);
      zone.world.machines.put({ ...rest, metadata: { ...metadata, resourceVersion: '900', ownerReferences: [] } });
    }

    await zone.sweep(names);
    await zone.sweep(names);

    expect(zone.deleted).toEqual(['m-1']);
  });

  test('wait for a health timeout of a new leader, which does not know whom the one before has replaced', async () => {
    const { zone, names } = silentZone(3, 20);
    for (const name of names.slice(0, 3)) zone.say(name, readySince(toTimestamp(zone.world.clock.now())));
    zone.world.clock.advance(MINUTE);
    await zone.sweep(names);
    await zone.sweep(names);
    expect(zone.deleted).toEqual(['m-1']);

    zone.restart();
    zone.world.clock.advance(9 * MINUTE);
    await zone.sweep(names);
    expect(zone.deleted).toEqual(['m-1']);
    zone.world.clock.advance(MINUTE);
    await zone.sweep(names);
    expect(zone.deleted).toEqual(['m-1', 'm-2']);
  });

  test.each([
    { unseen: 'a list has shown it', deletedBy: (zone: Zone, name: string) => zone.say(name, readySince(EARLIER)) },
    {
      unseen: 'this process is a new one',
      deletedBy: (zone: Zone, name: string) => {
        zone.deleteNode(name);
        zone.restart();
      },
    },
  ])('take them along one by one when kubelets alone say that they were ready: $unseen', async ({ deletedBy }) => {
    const { zone, names } = silentZone(0, 20);
    for (const name of names.slice(0, 11)) deletedBy(zone, name);

    const passes = await zone.sweep(names);
    await zone.sweep(names);
    expect(zone.deleted.length).toBeLessThanOrEqual(1);
    expect(explain(zone.get('m-5'), 0).message).toMatch(/^Node m-5 was deleted before this process could observe/);
    expect(told(passes).filter((one) => !/^Node \S+ was deleted/.test(one))).toEqual([]);
    zone.world.clock.advance(10 * MINUTE);
    await zone.sweep(names);
    await zone.sweep(names);

    expect(zone.deleted.length).toBeLessThanOrEqual(2);
  });

  test.each<{ phase: MachinePhase; what: string; losesWrites?: boolean; isUnnoticed?: boolean }>([
    { phase: 'InPlaceUpdating', what: 'is updated, and never Unknown' },
    { phase: 'Running', what: 'could not be made Unknown, because its status was refused', losesWrites: true },
    { phase: 'Running', what: 'was not looked at meanwhile', isUnnoticed: true },
  ])('keep their machines when they are ready again by clocks that are behind, each of which $what', async (row) => {
    const zone = new Zone('0');
    const names = numbered(10);
    for (const name of names) {
      zone.put(name, row.phase, (m) => void (m.status.currentStatus.lastUpdateTime = EARLIER));
      zone.say(name, SILENT, { isDeleted: false });
      zone.deleteNode(name);
    }
    zone.world.clock.advance(5 * MINUTE);
    zone.world.losesWrites = row.losesWrites ?? false;
    if (row.isUnnoticed !== true) await zone.sweep(names);
    zone.world.losesWrites = false;

    for (const name of names) zone.say(name, readySince(EARLIER));
    await zone.sweep(names);

    expect(zone.deleted).toEqual([]);
  });

  test('keep their machines if all was set back since they were deleted before, ready, which one list shows', async () => {
    const zone = new Zone('0');
    zone.put('m-1', 'Running');
    zone.say('m-1', readySince(EARLIER), { isDeleted: false });
    zone.deleteNode('m-1', START_MS + MINUTE);
    zone.say('m-1', SILENT);
    zone.world.clock.advance(10 * MINUTE);

    await zone.sweep(['m-1']);
    await zone.sweep(['m-1']);

    expect([zone.deleted, zone.phase]).toEqual([[], 'Unknown']);
  });

  test('take them along one by one when they are ready again by clocks that are behind, and otherwise unhealthy', async () => {
    const { zone, names } = silentZone(11, 20);
    await zone.sweep(names);
    const pressure = { type: 'DiskPressure', status: 'True' };
    for (const name of names.slice(0, 11)) zone.say(name, [readySince(EARLIER), pressure]);

    for (let i = 0; i < 3; i++) await zone.sweep(names);

    expect([zone.phase, zone.deleted]).toEqual(['Unknown', []]);
  });

  test('are told of once for each reason, and not again when it is only too early to decide', async () => {
    const { zone, names } = silentZone(11, 20);
    const reasons = async (): Promise<unknown> => {
      const passes = await zone.sweep(names);
      return [told(passes).filter((one) => one.startsWith('Node m-2 ')).length, reasonShown(zone, 'm-2')];
    };
    expect(await reasons()).toEqual([1, 'ZoneUnhealthy']);
    for (const name of ['m-10', 'm-11'])
      zone.say(name, readySince(toTimestamp(zone.world.clock.now())), { isDeleted: false });
    await zone.sweep(names);
    expect([await reasons(), reasonShown(zone, 'm-2')]).toEqual([expect.anything(), 'ReplacementPaced']);

    zone.world.graceLeftMs = MINUTE;
    expect(await reasons()).toEqual([0, 'ReplacementPaced']);
    zone.world.graceLeftMs = 0;
    expect(await reasons()).toEqual([0, 'ReplacementPaced']);
  });

  test('are told of by an Event, too, when a new leader takes long to know them', async () => {
    const { zone, names } = silentZone(3, 20);
    zone.world.graceLeftMs = MINUTE;
    expect(told(await zone.sweep(names))).toEqual([]);
    zone.world.clock.advance(30 * MINUTE);

    const messages = told(await zone.sweep(['m-1']));

    expect([zone.deleted, messages]).toEqual([[], [expect.stringMatching(KEPT)]]);
  });

  test('are a matter of health when they are gone at once, because our finalizer was refused, and were not ready', async () => {
    const { zone, names } = silentZone(10, 10);
    const { cache } = zone.world.nodes;
    for (const seen of cache.list()) {
      const unprotected = { ...seen, metadata: { ...seen.metadata, finalizers: [], deletionTimestamp: undefined } };
      cache.remove(seen.metadata.name);
      zone.world.steps.lostNodes.noteDeleted(zone.get(seen.metadata.name), unprotected as unknown as Node);
    }

    await zone.sweep(names);

    expect([zone.deleted, zone.phase]).toEqual([[], 'Unknown']);
  });

  test('are not judged by a new leader before it has looked for a minute', async () => {
    const { zone } = silentZone(1, 4);
    zone.restart();

    await zone.sweep(['m-1']);
    expect([zone.deleted, explain(zone.get(), 0).reason]).toEqual([[], 'SafetyGrace']);
    zone.world.clock.advance(MINUTE);
    await zone.sweep(['m-1']);
    expect(zone.deleted).toEqual(['m-1']);
  });

  // Its health timeout has passed, but not under the eyes of this process.
  test('have their machines say the same in each pass of a new leader', async () => {
    const { zone, names } = silentZone(3, 4);
    zone.world.clock.advance(20 * MINUTE);
    zone.restart();
    zone.world.clock.advance(3 * MINUTE);
    await zone.sweep(names);

    zone.world.clock.advance(10 * SECOND);
    const passes = await zone.sweep(names);

    expect(passes.flatMap(({ writes, events }) => [...writes, ...events])).toEqual([]);
    expect(explain(zone.get(), 0)).toMatchObject({ reason: 'ZoneUnhealthy' });
  });
});

describe('a Node that was ready when it was deleted', () => {
  type Row = { what: string; phase?: MachinePhase; sinceMs?: number; make?: (zone: Zone) => void; want: string[] };
  test.each<Row>([
    { what: 'since long', want: ['m-1'] },
    { what: 'again for less than five minutes', sinceMs: 5 * MINUTE - SECOND, want: [] },
    { what: 'again for ten seconds, updated in place', phase: 'InPlaceUpdating', sinceMs: 10 * SECOND, want: [] },
    { what: 'for ten seconds, since it joined', phase: 'Pending', sinceMs: 10 * SECOND, want: ['m-1'] },
    {
      what: 'although a watch broke a moment before',
      make: ({ world }) => void (world.blindMs = 3_000),
      want: ['m-1'],
    },
    { what: 'but not now', make: (zone) => zone.say('m-1', SILENT), want: ['m-1'] },
    { what: 'by a clock that is ahead', make: ({ world }) => world.clock.reanchor(START_MS - MINUTE), want: ['m-1'] },
    { what: 'again, with a machine that is still Unknown', phase: 'Unknown', want: [] },
  ])('takes along at once, also where others wait: ready $what', async (row) => {
    const { phase = 'Running', sinceMs = 5 * MINUTE, make, want } = row;
    const { zone } = silentZone(4, 6, '0');
    zone.put('m-1', phase);
    zone.say('m-1', readySince(EARLIER), { isDeleted: false });
    zone.world.clock.advance(sinceMs);
    zone.deleteNode('m-1');
    make?.(zone);

    await zone.sweep(['m-1']);

    expect(zone.deleted).toEqual(want);
  });

  const wasSilent = (zone: Zone): void => zone.say('m-1', SILENT, { isDeleted: false });
  /** Another process has found so, at that time. */
  const isWellSince =
    (lastUpdateTime: string) =>
    (zone: Zone): void =>
      zone.put('m-1', 'Running', ({ status }) => {
        status.currentStatus.lastUpdateTime = lastUpdateTime;
        status.lastOperation = { type: 'HealthCheck', state: 'Successful', description: 'It has re-joined.' };
      });
  test.each<{ what: string; before: (zone: Zone) => void; phase?: MachinePhase; isGone?: boolean; want: string[] }>([
    {
      what: 'was ready all the time',
      before: (zone) => zone.say('m-1', readySince(EARLIER), { isDeleted: false }),
      want: ['m-1'],
    },
    { what: 'was never seen otherwise', before: () => undefined, want: ['m-1'] },
    { what: 'was not ready a moment ago', before: wasSilent, want: [] },
    { what: 'was not ready a moment ago, and our finalizer does not keep', before: wasSilent, isGone: true, want: [] },
    {
      what: 'was ready before too, but by its time not in between',
      before: (zone) => zone.say('m-1', readySince('2025-12-30T00:00:00Z'), { isDeleted: false }),
      want: [],
    },
    { what: 'has had a machine that is well again for hours', before: isWellSince(EARLIER), want: ['m-1'] },
    {
      what: 'has a machine that has just been found well again by another process',
      before: isWellSince(START),
      want: [],
    },
    { what: 'was first seen when its machine was Unknown', before: () => undefined, phase: 'Unknown', want: [] },
    {
      what: 'was seen when its machine was Unknown, and our finalizer does not keep',
      before: () => undefined,
      phase: 'Unknown',
      isGone: true,
      want: [],
    },
  ])(
    'takes its machine along where others wait, but not if it $what',
    async ({ before, phase = 'Running', isGone, want }) => {
      const zone = new Zone('0');
      zone.put('m-1', phase);
      before(zone);
      zone.say('m-1', readySince(EARLIER), { isDeleted: false });
      await zone.sweep(['m-1']);
      expect(zone.phase).toBe('Running');
      zone.deleteNode('m-1', START_MS, { isGone });

      const messages = told(await zone.sweep(['m-1']));

      expect(zone.deleted).toEqual(want);
      const why = /^Node m-1 was deleted less than 5 minutes after it was ready again\. The Machine is kept for now: /;
      expect(messages.some((one) => why.test(one))).toBe(want.length === 0 && isGone !== true);
    },
  );

  test('leaves its machine to the health timeout if that is Unknown for another reason, and our finalizer does not keep it', async () => {
    const zone = new Zone('0');
    zone.put('m-1', 'Unknown');
    zone.say('m-1', [readySince(EARLIER), { type: 'DiskPressure', status: 'True' }], { isDeleted: false });
    zone.world.clock.advance(5 * MINUTE);
    zone.deleteNode('m-1', START_MS, { isGone: true });

    await zone.sweep(['m-1']);

    expect([zone.deleted, zone.phase]).toEqual([[], 'Unknown']);
  });

  test.each([
    { what: 'an outage began and ended', unseen: ({ world }: Zone) => void (world.trustedForMs = () => SECOND) },
    { what: 'its VM fell silent', unseen: (zone: Zone) => zone.say('m-1', SILENT) },
  ])('takes its machine along even if the DELETE is refused at first, and then $what', async ({ unseen }) => {
    const zone = new Zone('0');
    zone.put('m-1', 'Running');
    zone.say('m-1', readySince(EARLIER), { isDeleted: false });
    zone.deleteNode('m-1');
    zone.world.deleteFailures.push(new ApiError(500, 'InternalError', 'no'));
    await zone.sweep(['m-1']);
    expect(zone.deleted).toEqual([]);

    zone.world.clock.advance(5 * MINUTE);
    unseen(zone);
    await zone.sweep(['m-1']);

    expect(zone.deleted).toEqual(['m-1']);
  });
});
