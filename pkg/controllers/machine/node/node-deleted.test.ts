import { describe, expect, test } from '@jest/globals';

import { type BuiltMachine } from '../../../../test/builders.ts';
import { MINUTE, SECOND } from '../../../../test/durations.ts';
import {
  MAINTENANCE_ANNOTATION,
  MAINTENANCE_SINCE_ANNOTATION,
  PRESERVE_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import type { Node } from '../../../apis/wire.ts';
import { toTimestamp } from '../../../base/clock/clock.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { isUnderMaintenance } from '../../machine-facts/maintenance.ts';
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

const conditionTypes = (zone: Zone): string[] => (zone.get().status?.machineConditions ?? []).map(({ type }) => type);

describe('a deleted Node that is not ready', () => {
  test('takes its machine along when the others of its zone are well, not before they could be found unhealthy', async () => {
    const zone = new Zone();
    zone.put('m-1', 'Running');
    zone.say('m-1', SILENT);
    const { world } = zone;
    const first = await world.reconcile();
    expect([zone.phase, zone.deleted]).toEqual(['Unknown', []]);
    expect(first.result).toMatchObject({ kind: 'requeue' });

    world.clock.advance(MINUTE - SECOND);
    const { result } = await world.reconcile();
    expect(zone.deleted).toEqual([]);
    expect(result).toMatchObject({ kind: 'requeue', afterMs: SECOND });

    world.clock.advance(SECOND);
    await world.reconcile();
    expect(zone.deleted).toEqual(['m-1']);
  });

  test('keeps its machine while its zone is stopped, and says so now and then; afterwards it takes it along', async () => {
    const { zone, names } = silentZone(2, 4);
    const first = told(await zone.sweep(['m-1']));
    expect(first).toEqual([expect.stringMatching(KEPT)]);
    expect(first[0]).toMatch(/delete a Machine to force its replacement\.$/);
    expect(explain(zone.get(), 0)).toMatchObject({ reason: 'ZoneUnhealthy' });

    const later: string[] = [];
    for (let minutes = 0; minutes < 40; minutes++) {
      zone.world.clock.advance(MINUTE);
      later.push(...told(await zone.sweep(['m-1'])));
    }
    expect(later).toEqual(first);
    expect([zone.phase, zone.deleted]).toEqual(['Unknown', []]);

    zone.put('m-2', 'Running');
    zone.say('m-2', readySince(EARLIER), { isDeleted: false });
    await zone.sweep(names);
    expect(zone.deleted).toEqual(['m-1']);
  });

  test('without a condition Ready takes its machine along, which never becomes Unknown', async () => {
    const zone = new Zone();
    zone.put('m-1', 'Running');
    zone.say('m-1', { type: 'NetworkUnavailable', status: 'False' });

    await zone.sweep(['m-1']);
    expect([zone.phase, zone.deleted]).toEqual(['Running', []]);
    zone.world.clock.advance(MINUTE);
    await zone.sweep(['m-1']);

    expect(zone.deleted).toEqual(['m-1']);
  });

  test('keeps a machine that is in maintenance, which says nothing of its zone', async () => {
    const { zone } = silentZone(3, 4);
    await zone.sweep(['m-1']);
    expect(zone.get().status?.lastOperation?.errorCode).toBe('ZoneUnhealthy');
    const maintained = zone.get();
    const annotations = { ...maintained.metadata.annotations, [MAINTENANCE_ANNOTATION]: 'true' };
    zone.world.machines.put({
      ...maintained,
      metadata: { ...maintained.metadata, resourceVersion: '900', annotations },
    });

    const messages = told(await zone.sweep(['m-1']));

    expect(zone.deleted).toEqual([]);
    expect(messages).toContain(
      'Node m-1 was deleted while it was not ready. The Machine is kept for now: it is in maintenance; end the maintenance, or delete the Machine.',
    );
    expect(replacementHold([zone.get()])).toBeUndefined();
    expect(zone.get().status?.lastOperation?.errorCode).not.toBe('ZoneUnhealthy');
  });

  test('takes a machine that has failed along at once', async () => {
    const { zone } = silentZone(4, 4);
    zone.put('m-1', 'Failed');

    await zone.world.reconcile();

    expect(zone.deleted).toEqual(['m-1']);
  });

  test('has the maintenance of its machine ended that is no longer asked for, and takes it along in its turn', async () => {
    const { zone } = silentZone(1, 4);
    zone.world.nodes.keepsPatches = true;
    zone.put('m-1', 'Unknown', (m) => void (m.metadata.annotations[MAINTENANCE_SINCE_ANNOTATION] = START));

    for (let passes = 0; passes < 5; passes++) {
      expect(zone.deleted).toEqual([]);
      await zone.sweep(['m-1']);
      if (!isUnderMaintenance(zone.get())) break;
    }
    zone.world.clock.advance(MINUTE);
    await zone.sweep(['m-1']);

    expect(zone.deleted).toEqual(['m-1']);
  });

  test('keeps a machine that is in maintenance by a request that only the Node has', async () => {
    const { zone } = silentZone(1, 4);
    const [seen] = zone.world.nodes.cache.list().filter(({ metadata: { name } }) => name === 'm-1') as [Node];
    const annotations = { [MAINTENANCE_ANNOTATION]: 'true' };
    zone.world.nodes.cache.put({ ...seen, metadata: { ...seen.metadata, resourceVersion: '900', annotations } });

    await zone.sweep(['m-1']);

    expect([zone.deleted, isUnderMaintenance(zone.get())]).toEqual([[], true]);
  });

  test('keeps a machine without a health timeout, and says how it is replaced', async () => {
    const zone = new Zone();
    zone.put('m-1', 'Unknown', (m) => void (m.spec.disableHealthTimeout = true));
    zone.say('m-1', SILENT);
    zone.world.clock.advance(60 * MINUTE);

    const messages = told(await zone.sweep(['m-1']));

    expect(messages).toEqual([expect.stringMatching(/spec\.disableHealthTimeout is set; to replace it, delete/)]);
    expect([zone.deleted, explain(zone.get(), 0).reason]).toEqual([[], 'NodeDeleted']);
  });

  test('is decided about anew when its Machine has changed unseen', async () => {
    const { zone } = silentZone(1, 4);
    zone.world.deleteFailures.push(new ApiError(409, 'Conflict', 'the Machine has changed'));

    const [first] = await zone.sweep(['m-1']);
    expect([ApiError.is(first?.error, 'Conflict'), zone.deleted]).toEqual([true, []]);
    await zone.sweep(['m-1']);

    expect(zone.deleted).toEqual(['m-1']);
  });

  test('waits for others although the clock of its cluster is a bit ahead', async () => {
    const zone = new Zone();
    zone.put('m-1', 'Running');
    zone.say('m-1', { ...SILENT, lastTransitionTime: toTimestamp(START_MS + 2 * SECOND) });

    await zone.sweep(['m-1']);
    expect(zone.deleted).toEqual([]);
    zone.world.clock.advance(MINUTE + 2 * SECOND);
    await zone.sweep(['m-1']);

    expect(zone.deleted).toEqual(['m-1']);
  });

  test('does not wait for one whose machine is never replaced', async () => {
    const zone = new Zone();
    for (const name of ['m-1', 'm-2']) {
      zone.put(name, 'Running', (m) => void (m.spec.disableHealthTimeout = name === 'm-2'));
      zone.say(name, readySince(START));
    }
    zone.restart();
    zone.world.clock.advance(MINUTE);

    await zone.sweep(['m-1', 'm-2']);

    expect(zone.deleted).toEqual(['m-1']);
  });

  test('does not wait for hours by the clock of a former leader, which was ahead', async () => {
    const zone = new Zone();
    zone.put('m-1', 'Unknown', (m) => void (m.status.currentStatus.lastUpdateTime = '2026-01-01T05:00:00Z'));
    zone.say('m-1', SILENT);

    await zone.sweep(['m-1']);
    expect(zone.deleted).toEqual([]);
    zone.world.clock.advance(MINUTE);
    await zone.sweep(['m-1']);

    expect(zone.deleted).toEqual(['m-1']);
  });

  test('waits for others also if its machine is updated, which does not make it Unknown', async () => {
    const zone = new Zone('5');
    const names = numbered(10);
    for (const name of names) {
      zone.put(name, name === 'm-1' ? 'InPlaceUpdating' : 'Running');
      zone.say(name, SILENT);
    }

    await zone.sweep(names);

    expect(zone.deleted).toEqual([]);
  });

  test.each<{ phase: MachinePhase; preserve: string }>([
    { phase: 'Failed', preserve: 'now' },
    { phase: 'Failed', preserve: 'when-failed' },
    { phase: 'Failed', preserve: 'auto-preserved' },
    { phase: 'Unknown', preserve: 'now' },
  ])('keeps a machine that is $phase and preserved by $preserve, says so, and holds up no other', async (row) => {
    const { zone } = silentZone(1, 4);
    const preserveExpiryTime = '2026-01-01T01:00:00Z';
    const keep = (m: BuiltMachine): void => {
      m.metadata.annotations[PRESERVE_ANNOTATION] = row.preserve;
      m.status.currentStatus = { phase: row.phase, lastUpdateTime: START, preserveExpiryTime };
    };
    zone.put('m-1', row.phase, keep);
    zone.put('m-2', 'Running');
    zone.say('m-2', readySince(START));

    // It trusts others that are lost, too, only after a health timeout.
    zone.restart();
    zone.world.clock.advance(MINUTE);
    const messages = told(await zone.sweep(['m-1', 'm-2']));
    expect(messages).toContain(
      `Node m-1 was deleted while it was not ready. The Machine is kept for now: it is preserved until ${preserveExpiryTime}; end the preservation, or delete the Machine.`,
    );
    expect(explain(zone.get(), START_MS).message).toContain('is preserved until');
    // An unhealthy one counts all the same.
    expect(zone.deleted).toEqual(row.phase === 'Failed' ? ['m-2'] : []);

    zone.world.clock.advance(60 * MINUTE);
    for (let i = 0; i < 3; i++) await zone.sweep(['m-1']);
    expect(zone.deleted).toContain('m-1');
  });

  test.each([{ by: 'the Machine' }, { by: 'its Node' }])(
    'keeps a machine that is to be preserved when it has failed by a request of $by, until it is',
    async ({ by }) => {
      const zone = new Zone();
      zone.world.nodes.keepsPatches = true;
      const request = { [PRESERVE_ANNOTATION]: 'when-failed' };
      zone.put('m-1', 'Unknown', (m) => void (by === 'the Machine' && Object.assign(m.metadata.annotations, request)));
      zone.say('m-1', SILENT);
      const [seen] = zone.world.nodes.cache.list() as [Node];
      const annotations = by === 'its Node' ? request : {};
      zone.world.nodes.cache.put({ ...seen, metadata: { ...seen.metadata, resourceVersion: '900', annotations } });

      zone.world.clock.advance(MINUTE);
      const messages = told(await zone.sweep(['m-1']));
      expect([zone.phase, zone.deleted]).toEqual(['Unknown', []]);
      expect(messages).toContain(
        'Node m-1 was deleted while it was not ready. The Machine is kept for now: it is to be preserved when it has failed; end the preservation, or delete the Machine.',
      );

      zone.world.clock.advance(10 * MINUTE);
      for (let i = 0; i < 4; i++) await zone.sweep(['m-1']);
      expect([zone.phase, zone.deleted]).toEqual(['Failed', []]);
      expect(zone.get().status?.currentStatus?.preserveExpiryTime).toBeDefined();
    },
  );

  test.each([
    { what: 'works', namedNode: readySince(EARLIER) },
    { what: 'is not ready either, which is a matter of health', namedNode: SILENT },
  ])('is let go without its machine, which has registered under another name and $what', async ({ namedNode }) => {
    const zone = new Zone('0');
    zone.put('m-1', 'Running', (m) => void (m.metadata.labels['node'] = 'host-1'));
    zone.say('m-1', SILENT);
    const [stale] = zone.world.nodes.cache.list() as [Node];
    zone.world.nodes.cache.put({
      ...stale,
      metadata: { ...stale.metadata, name: 'host-1', uid: 'host-1', deletionTimestamp: undefined },
      status: { conditions: [namedNode] },
    } as unknown as Node);
    zone.world.clock.advance(5 * MINUTE);

    await zone.sweep(['m-1']);

    expect([zone.deleted, zone.world.nodes.done.filter((one) => one.startsWith('remove'))]).toEqual([
      [],
      ['remove m-1'],
    ]);
    // Another finalizer keeps it.
    zone.world.nodes.cache.put({
      ...stale,
      metadata: { ...stale.metadata, resourceVersion: '900', finalizers: ['x'] },
    });
    zone.world.nodes.done.length = 0;
    await zone.sweep(['m-1']);
    expect([zone.deleted, zone.world.nodes.done.filter((one) => one.startsWith('remove'))]).toEqual([[], []]);
  });

  test('takes its machine along, which works under another name, if somebody deletes it while it is ready', async () => {
    const zone = new Zone('0');
    zone.put('m-1', 'Running', (m) => void (m.metadata.labels['node'] = 'host-1'));
    zone.say('m-1', readySince(EARLIER), { isDeleted: false });
    const [other] = zone.world.nodes.cache.list() as [Node];
    zone.world.nodes.cache.put({ ...other, metadata: { ...other.metadata, name: 'host-1', uid: 'host-1' } });

    zone.deleteNode('m-1');
    await zone.sweep(['m-1']);

    expect([zone.deleted, zone.world.nodes.done]).toEqual([['m-1'], []]);
  });

  test.each([
    { what: 'throttled', failure: new ApiError(429, 'TooManyRequests', 'too many requests'), isGoneOn: true },
    { what: 'too slow', failure: new ApiError(504, 'Timeout', 'webhook'), isGoneOn: true },
    { what: 'refused', failure: new ApiError(403, 'Forbidden', 'no'), isGoneOn: true },
    { what: 'kept back, as all is', failure: new GateClosedError('outage', 'target', 'closed'), isGoneOn: false },
  ])(
    'of which the removal is $what, does not keep its machine from being Unknown, which works as another Node no more',
    async (row) => {
      const zone = new Zone('0');
      zone.put('m-1', 'Running', (m) => void (m.metadata.labels['node'] = 'host-1'));
      zone.say('m-1', SILENT);
      const [stale] = zone.world.nodes.cache.list() as [Node];
      const named = { ...stale.metadata, name: 'host-1', uid: 'host-1', deletionTimestamp: undefined };
      zone.world.nodes.cache.put({ ...stale, metadata: named } as unknown as Node);
      zone.world.nodes.remove = () => Promise.reject(row.failure);

      const { error } = await zone.world.reconcile();

      expect([zone.deleted, zone.phase]).toEqual([[], row.isGoneOn ? 'Unknown' : 'Running']);
      expect(error === undefined).toBe(row.isGoneOn);
    },
  );

  const inMaintenance = (m: BuiltMachine): void => void (m.metadata.annotations[MAINTENANCE_ANNOTATION] = 'true');
  const withoutTimeout = (m: BuiltMachine): void => void (m.spec.disableHealthTimeout = true);
  const inGrace = ({ world }: Zone): void => void (world.graceLeftMs = MINUTE);
  const silentNow = (zone: Zone): void =>
    zone.say('m-1', { ...SILENT, lastTransitionTime: toTimestamp(zone.world.clock.now()) });
  test.each([
    { what: 'its maintenance is over', make: inMaintenance, early: inGrace, instead: 'SafetyGrace' },
    { what: 'it has a health timeout', make: withoutTimeout, early: inGrace, instead: 'SafetyGrace' },
    { what: 'it has a health timeout, and others are looked at', make: withoutTimeout, early: silentNow },
  ])('is not said to be kept until a user acts any more when $what', async ({ make, early, instead }) => {
    const { zone } = silentZone(0, 4);
    zone.put('m-1', 'Running', make);
    zone.say('m-1', readySince(START));
    await zone.sweep(['m-1']);
    const { status } = zone.get();
    expect(reasonShown(zone, 'm-1')).toMatch(/^(InMaintenance|HealthTimeoutDisabled)$/);

    const reason = reasonShown(zone, 'm-1');
    zone.put('m-1', 'Running', (m) => void (m.status.machineConditions = status?.machineConditions as []));
    early(zone);
    await zone.sweep(['m-1']);
    expect([zone.deleted, reasonShown(zone, 'm-1')]).toEqual([[], instead]);

    zone.put('m-1', 'Running', make);
    await zone.sweep(['m-1']);
    expect(reasonShown(zone, 'm-1')).toBe(reason);
  });
});

describe('a deleted Node of a machine that joins, and is not ready', () => {
  const joining = (zone: Zone, names: readonly string[]): void => {
    for (const name of names) {
      zone.put(name, 'Pending', (m) => {
        m.spec.disableHealthTimeout = true;
        m.status.lastOperation = { type: 'Create', state: 'Processing', description: 'Creating machine.' };
      });
      zone.say(name, SILENT);
    }
  };

  test('takes it along a minute later, when it is the only one', async () => {
    const zone = new Zone();
    joining(zone, ['m-1']);

    await zone.sweep(['m-1']);
    expect(zone.deleted).toEqual([]);
    zone.world.clock.advance(MINUTE);
    await zone.sweep(['m-1']);

    expect(zone.deleted).toEqual(['m-1']);
  });

  test.each([
    { what: 'others join', maxReplacements: '1', reason: 'TooManyReplacements' },
    { what: 'max-replacements is 0', maxReplacements: '0', reason: 'ReplacementStopped' },
  ])('keeps it while $what, and says so', async ({ maxReplacements, reason }) => {
    const zone = new Zone(maxReplacements);
    const names = numbered(10);
    joining(zone, names);
    zone.world.clock.advance(5 * MINUTE);

    const messages = told(await zone.sweep(names));

    expect(zone.deleted).toEqual([]);
    expect(messages).toHaveLength(10);
    expect(explain(zone.get(), 0)).toMatchObject({ reason: 'NodeDeleted', message: messages[0] });
    expect(zone.get().status?.machineConditions).toContainEqual(
      expect.objectContaining({ type: 'NodeDeleted', reason }),
    );
  });

  test('says nothing of it any more when it has another Node', async () => {
    const zone = new Zone('0');
    joining(zone, ['m-1']);
    zone.world.clock.advance(5 * MINUTE);
    await zone.sweep(['m-1']);
    expect(conditionTypes(zone)).toContain('NodeDeleted');

    zone.say('m-1', SILENT, { isDeleted: false });
    await zone.sweep(['m-1']);
    expect(conditionTypes(zone)).not.toContain('NodeDeleted');
    zone.say('m-1', SILENT);
    await zone.sweep(['m-1']);

    expect(conditionTypes(zone)).toContain('NodeDeleted');
  });

  test('does not let it run, also when it becomes ready', async () => {
    const zone = new Zone('0');
    joining(zone, ['m-1']);
    await zone.sweep(['m-1']);
    zone.world.clock.advance(SECOND);
    zone.say('m-1', readySince(toTimestamp(zone.world.clock.now())));

    await zone.sweep(['m-1']);

    expect([zone.phase, zone.deleted]).toEqual(['Pending', []]);
  });
});
