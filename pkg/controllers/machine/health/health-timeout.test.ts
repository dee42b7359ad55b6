import { describe, expect, test } from '@jest/globals';

import { MINUTE } from '../../../../test/durations.ts';
import { machine, machineClass, node } from '../../../../test/builders.ts';
import type { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { API_VERSION } from '../../../apis/machine/v1alpha1/group.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import { toTimestamp } from '../../../base/clock/clock.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { machineConditions } from '../explain/conditions.ts';
import { explain } from '../explain/explain.ts';
import { joinedMachine, currentMachine } from '../../../../test/fakes/joined-machine.ts';

const NOT_READY = { type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown' };

describe('the health timeout', () => {
  async function unknownFor(ms: number): Promise<FakeWorld> {
    const world = joinedMachine({ phase: 'Running', conditions: [NOT_READY] });
    await world.reconcile();
    world.clock.advance(ms);
    return world;
  }

  test('sets a timer, and fails the machine when it is over', async () => {
    const world = await unknownFor(9 * MINUTE);
    expect((await world.reconcile()).result).toMatchObject({ kind: 'requeue', afterMs: MINUTE });
    expect(currentMachine(world).status?.currentStatus?.phase).toBe('Unknown');

    world.clock.advance(MINUTE);
    const { machine: seen, events, writes } = await world.reconcile();

    expect(seen.status).toMatchObject({
      currentStatus: { phase: 'Failed' },
      lastOperation: { type: 'HealthCheck', state: 'Failed' },
    });
    expect(events.map(({ reason }) => reason)).toEqual(['HealthTimeout']);
    expect(world.failures).toEqual(['health-timeout']);
    expect(writes).toEqual(['status']);
  });

  test('spares a machine whose Node works when looked at live', async () => {
    const world = await unknownFor(10 * MINUTE);
    world.nodes.live.set('m-1', node());

    const { machine: seen, result } = await world.reconcile();

    expect(seen.status?.currentStatus?.phase).toBe('Unknown');
    expect(result).toMatchObject({ kind: 'requeue', waitingFor: 'the recovery of the Node to be recorded' });
  });

  test('spares a machine whose Node has changed since the cache has shown it: it may have been well in between', async () => {
    const world = await unknownFor(10 * MINUTE);
    world.nodes.live.set(
      'm-1',
      node((n) => {
        n.metadata.resourceVersion = '999';
        n.status.conditions = [NOT_READY];
      }),
    );

    const { machine: seen, result } = await world.reconcile();

    expect(seen.status?.currentStatus?.phase).toBe('Unknown');
    expect(result).toMatchObject({ kind: 'requeue', waitingFor: 'the latest version of the Node' });
  });

  test('fails a machine whose Node is gone also when looked at live', async () => {
    const world = await unknownFor(10 * MINUTE);
    world.nodes.live.set('m-1', undefined);

    expect((await world.reconcile()).machine.status?.currentStatus?.phase).toBe('Failed');
  });

  test.each([
    { what: 'of another version', change: { resourceVersion: '999' }, waitingFor: 'the latest version of the machine' },
    { what: 'of another UID', change: { uid: 'other' }, waitingFor: 'the deletion to be recorded' },
    { what: 'being deleted', change: { deletionTimestamp: 'now' }, waitingFor: 'the deletion to be recorded' },
    { what: 'gone', change: undefined, waitingFor: 'the deletion to be recorded' },
  ])('decides nothing from a cached machine that is $what at the server', async ({ change, waitingFor }) => {
    const world = await unknownFor(10 * MINUTE);
    const cached = currentMachine(world);
    const live = change && { ...cached, metadata: { ...cached.metadata, ...change } };
    world.liveMachines.set('default/m-1', live);

    const { machine: seen, result } = await world.reconcile();

    expect(seen.status?.currentStatus?.phase).toBe('Unknown');
    expect(result).toMatchObject({ kind: 'requeue', waitingFor });
  });

  test('fails a machine whose Node is that of another machine when looked at live', async () => {
    const world = await unknownFor(10 * MINUTE);
    world.machines.put(machine((m) => void Object.assign(m.metadata, { name: 'm-2', uid: 'uid-2' })));
    world.nodes.live.set(
      'm-1',
      node((n) => (n.metadata.labels['node.gardener.cloud/machine-name'] = 'm-2')),
    );

    expect((await world.reconcile()).machine.status?.currentStatus?.phase).toBe('Failed');
  });

  test('spares a machine whose Node asks for maintenance when looked at live', async () => {
    const world = await unknownFor(10 * MINUTE);
    world.nodes.live.set(
      'm-1',
      node((n) => {
        n.metadata.annotations = { 'machine.sapcloud.io/maintenance': 'true' };
        n.status.conditions = [NOT_READY];
      }),
    );

    const { machine: seen, result } = await world.reconcile();

    expect(seen.status?.currentStatus?.phase).toBe('Unknown');
    expect(result).toMatchObject({ waitingFor: 'the maintenance request to be recorded' });
  });

  test('does not count time before we could trust what we see', async () => {
    const world = await unknownFor(60 * MINUTE);
    world.trustedForMs = () => 4 * MINUTE;

    expect((await world.reconcile()).result).toMatchObject({ kind: 'requeue', afterMs: 6 * MINUTE });
    expect(currentMachine(world).status?.currentStatus?.phase).toBe('Unknown');
  });

  test('waits for the grace after an outage', async () => {
    const world = await unknownFor(60 * MINUTE);
    world.graceLeftMs = 90_000;

    expect((await world.reconcile()).result).toMatchObject({ kind: 'requeue', afterMs: 90_000 });
  });

  test('is refused by the gate without a proof of life', async () => {
    const world = await unknownFor(10 * MINUTE);
    world.closedGate = new GateClosedError('unproven', 'target', 'no sign of life');

    const { error, writes } = await world.reconcile();

    expect(error).toBe(world.closedGate);
    expect(writes).toEqual([]);
  });

  test('begins anew when it began by a clock that was ahead', async () => {
    const world = await unknownFor(0);
    const { status, ...rest } = currentMachine(world);
    world.machines.put({
      ...rest,
      metadata: { ...rest.metadata, resourceVersion: '500' },
      status: { ...status, currentStatus: { ...status?.currentStatus, lastUpdateTime: '2026-01-01T05:00:00Z' } },
    });
    const phaseAfter = async (ms: number): Promise<unknown> => {
      world.clock.advance(ms);
      return (await world.reconcile()).machine.status?.currentStatus?.phase;
    };

    expect(await phaseAfter(0)).toBe('Unknown');
    expect(await phaseAfter(9 * MINUTE)).toBe('Unknown');
    expect(await phaseAfter(MINUTE)).toBe('Failed');
  });

  test('can be disabled', async () => {
    const world = await unknownFor(60 * MINUTE);
    const { spec, ...rest } = currentMachine(world);
    world.machines.put({
      ...rest,
      metadata: { ...rest.metadata, resourceVersion: '500' },
      spec: { ...spec, disableHealthTimeout: true },
    });

    expect((await world.reconcile()).machine.status?.currentStatus?.phase).toBe('Unknown');
  });

  /** The machine of this world belongs to a set with others. */
  function withMates(world: FakeWorld, mates: readonly { phase: MachinePhase; sinceMs?: number }[]): void {
    const owner = { apiVersion: API_VERSION, kind: 'MachineSet', name: 's', uid: 's', controller: true };
    const mine = currentMachine(world);
    world.machines.put({ ...mine, metadata: { ...mine.metadata, resourceVersion: '500', ownerReferences: [owner] } });
    for (const [i, { phase, sinceMs = 0 }] of mates.entries()) {
      world.machines.put(
        machine((m) => {
          m.metadata.name = `mate-${i}`;
          m.metadata.resourceVersion = String(600 + i);
          m.metadata.ownerReferences = [owner];
          m.status.currentStatus = { phase, lastUpdateTime: toTimestamp(Date.parse('2026-01-01') + sinceMs) };
        }),
      );
    }
  }

  test('replaces one machine of a set at a time, and the others say so, once', async () => {
    const world = await unknownFor(10 * MINUTE);
    withMates(world, [{ phase: 'Pending' }]);

    const seen = [await world.reconcile(), await world.reconcile()];

    expect(seen.map(({ machine: m }) => m.status?.currentStatus?.phase)).toEqual(['Unknown', 'Unknown']);
    expect(seen.map(({ writes }) => writes)).toEqual([['status'], []]);
    expect(seen.map(({ events }) => events.map(({ reason }) => reason))).toEqual([['ReplacementDelayed'], []]);
    expect(seen[1]?.machine.status?.lastOperation).toMatchObject({
      type: 'HealthCheck',
      state: 'Processing',
      description:
        'Machine m-1 is unhealthy - changing MachineState to Unknown. Node conditions: Ready is Unknown (NodeStatusUnknown). Not replaced yet: annotation machine.sapcloud.io/max-replacements of its MachineDeployment currently allows no more replacements.',
    });
    expect(explain(currentMachine(world), world.clock.now())).toMatchObject({
      reason: 'ReplacementDelayed',
      waitingFor: 'other replacements to finish',
    });
  });

  test('leaves the turn of a machine whose failure was not written to another of its set', async () => {
    const world = await unknownFor(10 * MINUTE);
    withMates(world, [{ phase: 'Unknown', sinceMs: -1 }]);
    const mate = world.machines.get('default/mate-0') as Machine;
    world.machines.put({ ...mate, metadata: { ...mate.metadata, uid: 'uid-of-mate', resourceVersion: '700' } });
    world.settings.zoneUnhealthyThreshold = 1;
    world.liveMachines.set('default/m-1', undefined);
    await world.pass(world.only('health-timeout'));

    const { machine: seen } = await world.pass(world.only('health-timeout'), 'default/mate-0');

    expect(seen.status?.currentStatus?.phase).toBe('Failed');
  });

  test('fails one of several sets in a zone at a time, also when all of them are looked at at once', async () => {
    const world = await unknownFor(10 * MINUTE);
    const phases: readonly MachinePhase[] = ['Unknown', 'Unknown', 'Running', 'Running', 'Running', 'Running'];
    withMates(
      world,
      phases.map((phase) => ({ phase })),
    );
    for (const [i, one] of world.machines.list().entries()) {
      const owner = { apiVersion: API_VERSION, kind: 'MachineSet', name: `s-${i}`, uid: `s-${i}`, controller: true };
      const metadata = { ...one.metadata, uid: `uid-${i}`, resourceVersion: String(900 + i), ownerReferences: [owner] };
      world.machines.put({ ...one, metadata });
    }

    const keys = ['default/m-1', 'default/mate-0', 'default/mate-1'];
    const seen = await Promise.all(keys.map((key) => world.pass(world.only('health-timeout'), key)));

    expect(seen.map(({ machine: m }) => m.status?.currentStatus?.phase ?? '').toSorted()).toEqual([
      'Failed',
      'Unknown',
      'Unknown',
    ]);
  });

  test('fails nobody of a zone of which half of the machines became unhealthy at once, until the share has fallen', async () => {
    const world = await unknownFor(10 * MINUTE);
    withMates(world, [{ phase: 'Unknown' }, { phase: 'Running' }, { phase: 'Running' }]);

    const stopped = [await world.reconcile(), await world.reconcile()];

    expect(stopped.map(({ writes }) => writes)).toEqual([['status'], []]);
    expect(stopped[0]?.machine.status?.currentStatus?.phase).toBe('Unknown');
    expect(stopped[0]?.machine.status?.lastOperation?.description).toContain(
      'Not replaced yet: too many machines became unhealthy at once',
    );
    expect(explain(currentMachine(world), 0)).toMatchObject({ reason: 'ZoneUnhealthy' });
    expect(stopped[1]?.result).toMatchObject({
      kind: 'requeue',
      waitingFor: 'more machines of its zone to be healthy',
    });

    world.machines.put(
      machine((m) => {
        m.metadata.name = 'mate-0';
        m.metadata.resourceVersion = '900';
      }),
    );
    const { machine: failed } = await world.reconcile();

    expect(failed.status?.currentStatus?.phase).toBe('Failed');
    expect(failed.status?.lastOperation?.description).not.toContain('Not replaced yet');
  });

  test.each([
    { what: 'waits for', provider: 'sim', phase: 'Unknown' },
    { what: 'does not wait for', provider: 'another', phase: 'Failed' },
  ])('$what machines of a zone of the same name at provider $provider', async ({ provider, phase }) => {
    const world = await unknownFor(10 * MINUTE);
    world.classes.put(machineClass());
    world.classes.put(
      machineClass((c) => {
        c.metadata.name = 'elsewhere';
        c.provider = provider;
      }),
    );
    withMates(world, []);
    for (const name of ['x', 'y']) {
      world.machines.put(
        machine((m) => {
          m.metadata.name = name;
          m.spec.class = { kind: 'MachineClass', name: 'elsewhere' };
          m.status.currentStatus = { phase: 'Unknown', lastUpdateTime: toTimestamp(Date.parse('2026-01-01')) };
        }),
      );
    }

    expect((await world.reconcile()).machine.status?.currentStatus?.phase).toBe(phase);
  });

  describe('while none of the Nodes of the Machines is in the target cluster', () => {
    const ZONES = ['a', 'b', 'c'];
    const HELD = expect.stringContaining(
      'Not replaced yet: none of the Nodes of the Machines is in the target cluster',
    );

    /** Machines that have worked, each in its zone, of which no Node is there, for longer than the health timeout. */
    async function lost(zones: readonly string[]): Promise<FakeWorld> {
      const world = await unknownFor(0);
      world.nodes.cache.remove('m-1');
      for (const [i, zone] of zones.entries())
        world.machines.put(
          machine((m) => {
            const name = `m-${i + 1}`;
            const owner = { apiVersion: API_VERSION, kind: 'MachineSet', name, uid: name, controller: true };
            const { annotations, finalizers } = currentMachine(world).metadata;
            const metadata = { name, uid: name, resourceVersion: String(500 + i), labels: { node: name } };
            Object.assign(m.metadata, { annotations, finalizers }, metadata, { ownerReferences: [owner] });
            m.spec.nodeTemplate = { metadata: { labels: { 'topology.kubernetes.io/zone': zone } } };
            m.spec.providerID = `sim:///${name}`;
            m.status.conditions = [NOT_READY];
          }),
        );
      await phasesIn(world);
      world.clock.advance(10 * MINUTE);
      return world;
    }

    async function phasesIn(world: FakeWorld): Promise<unknown[]> {
      for (const { metadata } of world.machines.list()) await world.reconcile(`default/${metadata.name}`);
      return world.machines.list().map(({ status }) => status?.currentStatus?.phase);
    }

    test('fails no machine, in whatever zone, and each says so, once', async () => {
      const world = await lost(ZONES);

      expect(await phasesIn(world)).toEqual(['Unknown', 'Unknown', 'Unknown']);

      const { events, writes, result } = await world.reconcile();
      expect({ events, writes, result }).toMatchObject({
        events: [],
        writes: [],
        result: { kind: 'requeue', waitingFor: 'a Node of one of the Machines in the target cluster' },
      });
      expect(currentMachine(world).status?.lastOperation).toMatchObject({
        errorCode: 'NoNodesInTarget',
        description: HELD,
      });
      expect(explain(currentMachine(world), 0)).toMatchObject({ reason: 'NoNodesInTarget' });
      const told = world.events.filter(({ reason }) => reason === 'ReplacementDelayed');
      expect(told.map(({ message }) => message)).toEqual([HELD, HELD, HELD]);
      expect(world.warnings.filter(({ message }) => message.includes('none of the Nodes'))).toEqual([
        expect.objectContaining({ fields: { cluster: 'target', machines: 3 } }),
      ]);
    });

    test('goes on as soon as one of them is there', async () => {
      const world = await lost(ZONES);
      await phasesIn(world);
      world.nodes.cache.put(
        node((n) => {
          n.metadata.name = 'm-3';
          n.metadata.labels['node.gardener.cloud/machine-name'] = 'm-3';
          n.spec.providerID = 'sim:///m-3';
        }),
      );

      expect(await phasesIn(world)).toEqual(['Failed', 'Failed', 'Running']);
      expect(currentMachine(world).status?.lastOperation?.description).not.toContain('Not replaced yet');
    });

    test('goes on with the last of them when the others are deleted', async () => {
      const world = await lost(['a', 'b']);
      expect(await phasesIn(world)).toEqual(['Unknown', 'Unknown']);
      world.machines.remove('default/m-2');

      expect(await phasesIn(world)).toEqual(['Failed']);
    });
  });

  test('does not wait for the turn of others that are in maintenance', async () => {
    const world = await unknownFor(10 * MINUTE);
    withMates(world, [{ phase: 'Unknown' }, ...Array.from({ length: 7 }, () => ({ phase: 'Running' as const }))]);
    for (const mate of world.machines.list()) {
      if (mate.metadata.name === 'm-1') continue;
      const annotations = { 'machine.sapcloud.io/maintenance': 'true' };
      const metadata = { ...mate.metadata, resourceVersion: '900', annotations };
      world.machines.put({ ...mate, metadata });
    }
    const [pool, zone] = [
      { key: 's', isAlone: true, limit: 1 },
      { key: '', together: 1 },
    ];
    world.pace.begin({ uid: 'before', pool, zone, healthTimeoutMs: 10 * MINUTE });
    world.clock.advance(MINUTE);

    expect((await world.reconcile()).machine.status?.currentStatus?.phase).toBe('Failed');
  });

  test('replaces one of several within a health timeout, although others were replaced quickly', async () => {
    const world = await unknownFor(10 * MINUTE);
    withMates(world, [{ phase: 'Unknown' }, ...Array.from({ length: 7 }, () => ({ phase: 'Running' as const }))]);
    const [pool, zone] = [
      { key: 's', isAlone: false, limit: 1 },
      { key: '', together: 1 },
    ];
    world.pace.begin({ uid: 'before', pool, zone, healthTimeoutMs: 10 * MINUTE });
    world.clock.advance(MINUTE);

    const waiting = await world.reconcile();

    expect(waiting.machine.status?.currentStatus?.phase).toBe('Unknown');
    expect(waiting.result).toMatchObject({ kind: 'requeue', afterMs: 10_000, waitingFor: 'its turn to be replaced' });
    expect(explain(currentMachine(world), world.clock.now())).toMatchObject({ reason: 'ReplacementPaced' });
    world.clock.advance(9 * MINUTE);
    expect((await world.reconcile()).machine.status?.currentStatus?.phase).toBe('Failed');
  });

  test.each(['InPlaceUpdateSuccessful', 'InPlaceUpdateFailed'] as const)(
    'replaces one of several that are %s within a health timeout, although others were replaced quickly',
    async (phase) => {
      const world = joinedMachine({ phase, conditions: [NOT_READY] });
      withMates(world, [{ phase }, { phase: 'Running' }]);
      const [pool, zone] = [
        { key: 's', isAlone: false, limit: 1 },
        { key: 'other', together: 1 },
      ];
      world.clock.advance(10 * MINUTE);
      world.pace.begin({ uid: 'before', pool, zone, healthTimeoutMs: 10 * MINUTE });
      world.clock.advance(MINUTE);

      const waiting = (await world.reconcile()).machine;

      expect(waiting.status).toMatchObject({
        currentStatus: { phase },
        lastOperation: { errorCode: 'ReplacementPaced' },
      });
      world.clock.advance(9 * MINUTE);
      expect((await world.reconcile()).machine.status?.currentStatus?.phase).toBe('Failed');
    },
  );

  test('that has passed, but not under our eyes, says that it waits', async () => {
    const world = await unknownFor(60 * MINUTE);
    world.graceLeftMs = 90_000;

    const seen = [await world.reconcile(), await world.reconcile()];

    expect(seen.map(({ writes, events }) => [writes, events])).toEqual([
      [['status'], []],
      [[], []],
    ]);
    expect(explain(currentMachine(world), 0)).toMatchObject({ reason: 'SafetyGrace' });
    expect(machineConditions(currentMachine(world), 0).find(({ type }) => type === 'Healthy')).toMatchObject({
      status: 'Unknown',
      reason: 'SafetyGrace',
    });
  });
});
