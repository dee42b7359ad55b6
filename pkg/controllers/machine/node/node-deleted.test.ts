import { describe, expect, test } from '@jest/globals';

import { type BuiltMachine, machine, machineDeployment, machineSet, node } from '../../../../test/builders.ts';
import { MINUTE, SECOND } from '../../../../test/durations.ts';
import { FakeWorld, type PassSeen } from '../../../../test/fakes/machine-world.ts';
import { API_VERSION } from '../../../apis/machine/v1alpha1/group.ts';
import {
  MACHINE_FINALIZER,
  MACHINE_NAME_LABEL,
  MAINTENANCE_ANNOTATION,
  MAINTENANCE_SINCE_ANNOTATION,
  MAX_REPLACEMENTS_ANNOTATION,
  NODE_FINALIZER,
  PRESERVE_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import type { Node, NodeCondition } from '../../../apis/wire.ts';
import { toTimestamp } from '../../../base/clock/clock.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { isUnderMaintenance } from '../../machine-facts/maintenance.ts';
import { ReplacementPace } from '../../machine-facts/pace.ts';
import { ReplacementBudget } from '../../machine-facts/replacement-budget.ts';
import { replacementHold } from '../../machine-facts/replacement-held-condition.ts';
import { explain } from '../explain/explain.ts';

const START = '2026-01-01T00:00:00Z';
const EARLIER = '2025-12-31T00:00:00Z';
const START_MS = Date.parse(START);
const SILENT = { type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown' };
const KEPT = /^Node m-1 was deleted while it was not ready\. The Machine is kept for now: /;

const readySince = (lastTransitionTime: string): NodeCondition => ({
  type: 'Ready',
  status: 'True',
  lastTransitionTime,
});

/** Machines of one zone, the first of which is m-1; those of a pool belong to one MachineDeployment. */
class Zone {
  readonly world = new FakeWorld();
  #version = 1;

  constructor(maxReplacements?: string) {
    if (maxReplacements !== undefined) this.#limit(maxReplacements);
  }

  put(name: string, phase: MachinePhase, change: (m: BuiltMachine) => void = () => undefined): void {
    this.world.machines.put(
      machine((m) => {
        m.metadata.name = name;
        m.metadata.uid = name;
        m.metadata.resourceVersion = String(500 + this.#version++);
        m.metadata.finalizers = [MACHINE_FINALIZER];
        m.metadata.labels = { node: name };
        m.metadata.ownerReferences = [
          { apiVersion: API_VERSION, kind: 'MachineSet', name: 's', uid: 's', controller: true },
        ];
        m.metadata.annotations = { 'machinepriority.machine.sapcloud.io': '3' };
        m.spec.providerID = `sim:///${name}`;
        m.status.currentStatus = { phase, lastUpdateTime: START };
        m.status.conditions = [SILENT];
        m.status.lastOperation = { type: 'HealthCheck', state: 'Processing', description: 'It is unhealthy.' };
        change(m);
      }),
    );
  }

  /** What a list shows of its Node. */
  say(name: string, condition: NodeCondition | readonly NodeCondition[], { isDeleted = true } = {}): void {
    const old = this.world.nodes.cache.get(name);
    if (old !== undefined && !isDeleted) this.world.controller.forgetNode(old);
    const current = node((n) => {
      n.metadata.name = name;
      n.metadata.uid = `node-${name}`;
      n.metadata.resourceVersion = String(500 + this.#version++);
      n.metadata.finalizers = [NODE_FINALIZER];
      n.metadata.labels = { [MACHINE_NAME_LABEL]: name };
      n.spec.providerID = `sim:///${name}`;
      if (isDeleted) n.metadata.deletionTimestamp = START;
      n.status.conditions = [condition].flat();
    });
    this.world.controller.nodeSeen(old, current, () => [this.get(name)]);
    this.world.nodes.cache.put(current);
  }

  /** Somebody deletes its Node, which the watch delivers; one that our finalizer does not keep is gone. */
  deleteNode(name: string, atMs = START_MS, { isGone = false } = {}): void {
    const { controller, nodes } = this.world;
    const seen = nodes.cache.get(name) as Node;
    if (isGone) {
      controller.nodeDeleted({ ...seen, metadata: { ...seen.metadata, finalizers: [] } }, undefined, [this.get(name)]);
      nodes.cache.remove(name);
      nodes.live.set(name, undefined);
      return;
    }
    const old = seen;
    const deleted = { resourceVersion: String(500 + this.#version++), deletionTimestamp: toTimestamp(atMs) };
    const current = { ...old, metadata: { ...old.metadata, ...deleted } };
    controller.nodeDeleted(old, current, [this.get(name)]);
    nodes.cache.put(current);
  }

  get(name = 'm-1'): Machine {
    return this.world.machines.get(`default/${name}`) as Machine;
  }

  get phase(): string | undefined {
    return this.get().status?.currentStatus?.phase;
  }

  get deleted(): readonly string[] {
    return this.world.deletedMachines;
  }

  /** A pass over each that is there; who was deleted is gone with it, and replaced by one that runs. */
  async sweep(names: readonly string[]): Promise<PassSeen[]> {
    const passes: PassSeen[] = [];
    for (const name of names) {
      if (this.world.machines.get(`default/${name}`) === undefined) continue;
      passes.push(await this.world.reconcile(`default/${name}`));
    }
    for (const name of this.deleted) {
      this.world.machines.remove(`default/${name}`);
      this.world.nodes.cache.remove(name);
      this.put(`new-${name}`, 'Running');
    }
    return passes;
  }

  /** The process is another one. */
  restart(): void {
    const ledSinceMs = this.world.clock.now();
    this.world.trustedForMs = () => this.world.clock.now() - ledSinceMs;
    Object.assign(this.world, { pace: new ReplacementPace({ clock: this.world.clock }) });
    this.world.restart();
  }

  #limit(annotation: string): void {
    const owner = { apiVersion: API_VERSION, kind: 'MachineDeployment', name: 'd', uid: 'd', controller: true };
    const { machines, owners } = this.world;
    owners.deployments.put(
      machineDeployment((d) => {
        Object.assign(d.metadata, { name: 'd', uid: 'd', annotations: { [MAX_REPLACEMENTS_ANNOTATION]: annotation } });
      }),
    );
    owners.sets.put(
      machineSet((set) => void Object.assign(set.metadata, { name: 's', uid: 's', ownerReferences: [owner] })),
    );
    Object.assign(this.world, { budget: new ReplacementBudget({ machines, owners }) });
    this.world.restart();
  }
}

const numbered = (count: number): string[] => Array.from({ length: count }, (_, i) => `m-${i + 1}`);
const conditionTypes = (zone: Zone): string[] => (zone.get().status?.machineConditions ?? []).map(({ type }) => type);
const reasonShown = (zone: Zone, name: string): string | undefined =>
  zone.get(name).status?.machineConditions?.find(({ type }) => type === 'NodeDeleted')?.reason;
const told = (passes: readonly PassSeen[]): string[] =>
  passes.flatMap(({ events }) => events.map(({ message }) => message));

/** A zone whose first machines are silent, and their Nodes deleted. */
function silentZone(silent: number, all: number, maxReplacements?: string): { zone: Zone; names: readonly string[] } {
  const zone = new Zone(maxReplacements);
  const names = numbered(all);
  for (const [i, name] of names.entries()) {
    zone.put(name, i < silent ? 'Unknown' : 'Running');
    zone.say(name, i < silent ? SILENT : readySince(EARLIER), { isDeleted: i < silent });
  }
  zone.world.clock.advance(5 * MINUTE);
  return { zone, names };
}

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
