import { describe, expect, test } from '@jest/globals';

import { MINUTE } from '../../../../test/durations.ts';
import { machine, machineClass, node, secret } from '../../../../test/builders.ts';
import { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { newMachineWorld } from '../../../../test/fakes/new-machine-world.ts';
import { API_VERSION } from '../../../apis/machine/v1alpha1/group.ts';
import type { LastOperation, Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import { toTimestamp } from '../../../base/clock/clock.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { DriverError } from '../../../driver/error.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { machineConditions } from '../explain/conditions.ts';
import { explain } from '../explain/explain.ts';
import { wasUnprotected } from '../node/lost-nodes.ts';

const FINALIZER = 'machine.sapcloud.io/machine-controller-manager';
const NODE_FINALIZER = 'node.machine.sapcloud.io/machine-controller';
const READY = { type: 'Ready', status: 'True' };
const NOT_READY = { type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown' };
const TAINT = { key: 'node.gardener.cloud/critical-components-not-ready', effect: 'NoSchedule' };

const UNINITIALIZED = { key: 'node.cloudprovider.kubernetes.io/uninitialized', effect: 'NoSchedule' };
const NOT_JOINED = { type: 'Create', state: 'Failed', description: 'Machine m-1 failed to join the cluster in 20m.' };
const WAS_RUNNING = { type: 'HealthCheck', state: 'Failed', description: 'Machine m-1 is not healthy since 10m.' };
const NOT_INITIALIZED = { type: 'Create', state: 'Failed', description: 'Provider error: no. Initialize VM Instance' };
const NOT_CREATED = { type: 'Create', state: 'Failed', description: 'Cloud provider message - no.' } as const;
const SEVERAL_VMS = {
  ...NOT_INITIALIZED,
  description: 'Provider error: code = [OutOfRange] message = [two VMs]. Initialize VM Instance',
};
const BEING_INITIALIZED = { type: 'Create', state: 'Failed', errorCode: 'VMBeingInitialized', description: 'x' };

interface Setup {
  readonly phase: MachinePhase;
  readonly last?: LastOperation;
  readonly mirrored?: readonly { type: string; status: string }[];
  readonly conditions?: readonly { type: string; status: string }[];
  readonly taints?: readonly { key: string; effect: string }[];
  readonly noNode?: boolean;
  readonly noLabel?: boolean;
}

function start(setup: Setup): FakeWorld {
  const { phase, last, mirrored = [READY], conditions = [READY], taints = [] } = setup;
  const { noNode = false, noLabel = false } = setup;
  const world = new FakeWorld();
  world.machines.put(
    machine((m) => {
      m.metadata.finalizers = [FINALIZER];
      m.metadata.annotations = { 'machinepriority.machine.sapcloud.io': '3' };
      if (noLabel) m.metadata.labels = {};
      m.status.currentStatus.phase = phase;
      if (last !== undefined) m.status.lastOperation = last;
      m.status.conditions = [...mirrored];
    }),
  );
  if (noNode) return world;
  world.nodes.cache.put(
    node((n) => {
      n.metadata.finalizers = [NODE_FINALIZER];
      n.metadata.labels['node.gardener.cloud/machine-name'] = 'm-1';
      n.status.conditions = [...conditions];
      n.spec.taints = [...taints];
    }),
  );
  return world;
}

const current = (world: FakeWorld): Machine => world.machines.get('default/m-1') as Machine;

describe('health', () => {
  test.each([
    { what: 'a healthy Node', phase: 'Running', after: 'Running' },
    { what: 'a healthy Node', phase: 'Pending', after: 'Running' },
    { what: 'a healthy Node', phase: 'Unknown', after: 'Running' },
    { what: 'a healthy Node', phase: 'Failed', after: 'Running' },
    { what: 'a healthy Node', phase: 'InPlaceUpdateSuccessful', after: 'Running' },
    { what: 'a healthy Node', phase: 'InPlaceUpdating', after: 'InPlaceUpdating' },
    { what: 'a healthy Node', phase: 'InPlaceUpdateFailed', after: 'InPlaceUpdateFailed' },
    { what: 'an unhealthy Node', phase: 'Running', conditions: [NOT_READY], after: 'Unknown' },
    { what: 'an unhealthy Node', phase: 'Pending', conditions: [NOT_READY], after: 'Pending' },
    { what: 'a Node without conditions', phase: 'Running', conditions: [], after: 'Unknown' },
    { what: 'a Node without critical components', phase: 'Pending', taints: [TAINT], after: 'Pending' },
    { what: 'a Node without critical components', phase: 'Unknown', taints: [TAINT], after: 'Running' },
    {
      what: 'a Node that no cloud controller manager has initialized',
      phase: 'Pending',
      taints: [UNINITIALIZED],
      after: 'Pending',
    },
    { what: 'a Node without critical components', phase: 'Failed', last: NOT_JOINED, taints: [TAINT], after: 'Failed' },
    { what: 'a Node that has got them', phase: 'Failed', last: NOT_JOINED, after: 'Running' },
    {
      what: 'a Node without critical components',
      phase: 'Failed',
      last: WAS_RUNNING,
      taints: [TAINT],
      after: 'Running',
    },
    {
      what: 'a VM that is not initialized',
      phase: 'CrashLoopBackOff',
      last: NOT_INITIALIZED,
      after: 'CrashLoopBackOff',
    },
    { what: 'a VM that has a twin', phase: 'CrashLoopBackOff', last: SEVERAL_VMS, after: 'CrashLoopBackOff' },
    {
      what: 'a VM that is not initialized, with that word in the message',
      phase: 'CrashLoopBackOff',
      last: { ...NOT_INITIALIZED, description: 'Provider error: code = [Internal] message = [port OutOfRange].' },
      after: 'CrashLoopBackOff',
    },
    { what: 'a VM that was not initialized in time', phase: 'Failed', last: NOT_INITIALIZED, after: 'Failed' },
    { what: 'a VM that is still being initialized', phase: 'Failed', last: BEING_INITIALIZED, after: 'Failed' },
    { what: 'no Node any more', phase: 'Running', noNode: true, after: 'Unknown' },
    { what: 'no Node yet', phase: 'Running', mirrored: [], noNode: true, after: 'Running' },
    { what: 'no Node any more', phase: 'Pending', noNode: true, after: 'Pending' },
    { what: 'no label for a Node that is healthy', phase: 'Failed', noLabel: true, after: 'Running' },
    {
      what: 'no label for a Node that is not',
      phase: 'Running',
      noLabel: true,
      conditions: [NOT_READY],
      after: 'Unknown',
    },
    {
      what: 'no label for its Node, and no such Node',
      phase: 'Running',
      noLabel: true,
      noNode: true,
      after: 'Unknown',
    },
  ] as (Setup & { what: string; after: string })[])(
    'with $what: $phase becomes $after',
    async ({ after, ...setup }) => {
      const world = start(setup);

      const { machine: seen } = await world.reconcile();

      expect(seen.status?.currentStatus?.phase).toBe(after);
    },
  );

  test.each([
    { code: 'Uninitialized', phase: 'CrashLoopBackOff' },
    { code: 'Unavailable', phase: 'Running' },
  ] as const)(
    'a machine whose creation had failed before this process is $phase when its driver says $code, and not before',
    async ({ code, phase }) => {
      const world = newMachineWorld({ userData: 'x' });
      world.driver.methods.add('InitializeMachine');
      world.driver.failures['status'] = Array.from({ length: 100 }, () => new DriverError(code, 'words'));
      world.driver.failures['initialize'] = Array.from({ length: 100 }, () => new DriverError('Internal', 'words'));
      const cached = start({ phase: 'CrashLoopBackOff', last: NOT_CREATED });
      world.machines.put({ ...current(cached), metadata: { ...current(cached).metadata, resourceVersion: '500' } });
      world.nodes.cache.put(cached.nodes.cache.list()[0] as Node);
      const phases: (string | undefined)[] = [];

      for (let i = 0; i < 6; i++) {
        phases.push((await world.reconcile()).machine.status?.currentStatus?.phase);
        await world.settle();
      }

      expect(phases[0]).toBe('CrashLoopBackOff');
      expect(phases.at(-1)).toBe(phase);
    },
  );

  test.each([
    {
      what: 'does not run before the VM is initialized',
      needsInitialize: true,
      phase: 'CrashLoopBackOff',
      isKept: true,
    },
    { what: 'runs, and the answer is not kept', needsInitialize: false, phase: 'Running', isKept: false },
  ])('a machine whose VM was made, which its status does not tell yet, $what', async (row) => {
    const description = 'Could not prepare the creation of the VM: no';
    const last = { type: 'Create', state: 'Failed', errorCode: 'PreparationFailed', description } as const;
    const world = start({ phase: 'CrashLoopBackOff', last });
    const { uid } = current(world).metadata;
    const vm = { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [], lastKnownState: undefined };
    const made = { ...vm, how: 'created', needsInitialize: row.needsInitialize } as const;
    world.activities.startOrGet({ uid, key: 'default/m-1', account: 'sim' }, 'create', () => Promise.resolve(made));
    await world.settle();

    expect((await world.reconcile()).machine.status?.currentStatus?.phase).toBe(row.phase);
    expect(world.activities.hasResult('default/m-1')).toBe(row.isKept);
  });

  test('a machine that runs does not keep what a call told that was on its way when it came to run', async () => {
    const description = 'Could not prepare the creation of the VM: no';
    const last = { type: 'Create', state: 'Failed', errorCode: 'PreparationFailed', description } as const;
    const world = start({ phase: 'CrashLoopBackOff', last });
    const { uid } = current(world).metadata;
    let answer: () => void = () => undefined;
    const asked = new Promise<undefined>((resolve) => (answer = () => resolve(undefined)));
    world.activities.startOrGet({ uid, key: 'default/m-1', account: 'sim' }, 'create', () => asked);
    expect((await world.reconcile()).machine.status?.currentStatus?.phase).toBe('Running');

    answer();
    await world.settle();
    await world.reconcile();

    expect(world.activities.hasResult('default/m-1')).toBe(false);
  });

  test('tells of a machine that names no Node any more, where none shows its name', async () => {
    const world = start({ phase: 'Running', noLabel: true, noNode: true });
    const { events } = await world.reconcile();

    expect(events.map(({ reason, message }) => [reason, message])).toEqual([
      [
        'Unhealthy',
        expect.stringMatching(/^Label node of the Machine is missing, .* set it to the name of its Node\.$/),
      ],
    ]);
  });

  test('mirrors conditions only when they say something new', async () => {
    const world = start({ phase: 'Running', conditions: [{ ...READY, message: 'a new heartbeat' } as typeof READY] });
    expect((await world.reconcile()).writes).toEqual([]);

    world.nodes.cache.put(
      node((n) => {
        n.metadata.resourceVersion = '2';
        n.metadata.finalizers = [NODE_FINALIZER];
        n.metadata.labels['node.gardener.cloud/machine-name'] = 'm-1';
        n.status.conditions = [READY, { type: 'MemoryPressure', status: 'True' }];
      }),
    );
    const { writes, machine: seen } = await world.reconcile();
    expect(writes).toEqual(['status']);
    expect(seen.status?.conditions).toHaveLength(2);
  });

  test('tells of a machine that came back that it re-joined', async () => {
    const world = start({ phase: 'Unknown' });
    const { machine: seen, events } = await world.reconcile();

    expect(seen.status?.lastOperation).toMatchObject({
      type: 'HealthCheck',
      state: 'Successful',
      description: 'Machine m-1 successfully re-joined the cluster',
    });
    expect(events.map(({ reason }) => reason)).toEqual(['NodeRejoined']);
    expect(world.tokenCalls).toEqual([]);
  });

  test('keeps a preservation', async () => {
    const world = start({ phase: 'Running', conditions: [NOT_READY] });
    world.machines.put(
      machine((m) => {
        Object.assign(m, current(world));
        m.metadata = { ...m.metadata, resourceVersion: '2' };
        m.status.currentStatus = { phase: 'Running', preserveExpiryTime: '2026-02-01T00:00:00Z' };
      }),
    );

    const { machine: seen } = await world.reconcile();

    expect(seen.status?.currentStatus).toMatchObject({ phase: 'Unknown', preserveExpiryTime: '2026-02-01T00:00:00Z' });
  });
});

describe('the health timeout', () => {
  async function unknownFor(ms: number): Promise<FakeWorld> {
    const world = start({ phase: 'Running', conditions: [NOT_READY] });
    await world.reconcile();
    world.clock.advance(ms);
    return world;
  }

  test('sets a timer, and fails the machine when it is over', async () => {
    const world = await unknownFor(9 * MINUTE);
    expect((await world.reconcile()).result).toMatchObject({ kind: 'requeue', afterMs: MINUTE });
    expect(current(world).status?.currentStatus?.phase).toBe('Unknown');

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
    const cached = current(world);
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
    expect(current(world).status?.currentStatus?.phase).toBe('Unknown');
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
    const { status, ...rest } = current(world);
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
    const { spec, ...rest } = current(world);
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
    const mine = current(world);
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
    expect(explain(current(world), world.clock.now())).toMatchObject({
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
    expect(explain(current(world), 0)).toMatchObject({ reason: 'ZoneUnhealthy' });
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
    expect(explain(current(world), world.clock.now())).toMatchObject({ reason: 'ReplacementPaced' });
    world.clock.advance(9 * MINUTE);
    expect((await world.reconcile()).machine.status?.currentStatus?.phase).toBe('Failed');
  });

  test('that has passed, but not under our eyes, says that it waits', async () => {
    const world = await unknownFor(60 * MINUTE);
    world.graceLeftMs = 90_000;

    const seen = [await world.reconcile(), await world.reconcile()];

    expect(seen.map(({ writes, events }) => [writes, events])).toEqual([
      [['status'], []],
      [[], []],
    ]);
    expect(explain(current(world), 0)).toMatchObject({ reason: 'SafetyGrace' });
    expect(machineConditions(current(world), 0).find(({ type }) => type === 'Healthy')).toMatchObject({
      status: 'Unknown',
      reason: 'SafetyGrace',
    });
  });
});

describe('a machine about which nothing changes', () => {
  test.each([
    { what: 'runs', setup: { phase: 'Running' } },
    { what: 'is unhealthy', setup: { phase: 'Running', conditions: [NOT_READY] } },
    { what: 'has lost its Node', setup: { phase: 'Running', noNode: true } },
    { what: 'waits for its Node', setup: { phase: 'Pending', mirrored: [], noNode: true } },
    { what: 'waits for critical components', setup: { phase: 'Pending', taints: [TAINT] } },
    { what: 'is updated in place', setup: { phase: 'InPlaceUpdating' } },
  ] as { what: string; setup: Setup }[])('is not written again: $what', async ({ setup }) => {
    const world = start(setup);
    await world.reconcile();
    const [writes, requests] = [world.writes, world.nodes.done.length];

    for (let i = 0; i < 200; i++) await world.reconcile();

    expect(world.writes).toBe(writes);
    expect(world.nodes.done).toHaveLength(requests);
  });
});

describe('the creation timeout', () => {
  test('of a VM counts from when it was confirmed, not from the creation of the machine', async () => {
    const world = start({ phase: 'Pending', mirrored: [], noNode: true });
    world.machines.put(
      machine((m) => {
        Object.assign(m, current(world));
        m.metadata = { ...m.metadata, resourceVersion: '2', creationTimestamp: '2025-12-31T23:30:00Z' };
        m.status.currentStatus = { phase: 'Pending', timeoutActive: true, lastUpdateTime: '2026-01-01T00:00:00Z' };
        m.status.lastOperation = {
          type: 'Create',
          state: 'Processing',
          description: 'Creating machine on cloud provider',
        };
      }),
    );
    expect((await world.reconcile()).result).toMatchObject({ kind: 'requeue', afterMs: 20 * MINUTE });

    world.clock.advance(20 * MINUTE);
    const { machine: seen } = await world.reconcile();

    expect(seen.status).toMatchObject({
      currentStatus: { phase: 'Failed' },
      lastOperation: {
        type: 'Create',
        state: 'Failed',
        description: 'Machine m-1 failed to join the cluster in 20m0s.',
      },
    });
    expect(seen.status?.currentStatus).not.toHaveProperty('timeoutActive');
    expect(world.measured).toEqual(['failedToJoin']);
  });

  test.each([
    { source: 'the annotation', annotation: '1m', spec: '2m', wantMs: MINUTE },
    { source: 'the spec', annotation: 'soon', spec: '2m', wantMs: 2 * MINUTE },
    { source: 'the flag', annotation: undefined, spec: undefined, wantMs: 20 * MINUTE },
  ])('comes from $source', async ({ annotation, spec, wantMs }) => {
    const world = start({ phase: 'Pending', noNode: true });
    world.machines.put(
      machine((m) => {
        Object.assign(m, current(world));
        m.metadata = { ...m.metadata, resourceVersion: '2' };
        if (annotation !== undefined) {
          m.metadata.annotations['node.machine.sapcloud.io/effective-creation-timeout'] = annotation;
        }
        m.spec = { ...m.spec, ...(spec !== undefined && { creationTimeout: spec }) };
      }),
    );

    expect((await world.reconcile()).result).toMatchObject({ kind: 'requeue', afterMs: wantMs });
  });

  test('is off for a Running machine', async () => {
    const world = start({ phase: 'Running' });
    world.clock.advance(600 * MINUTE);

    expect((await world.reconcile()).machine.status?.currentStatus?.phase).toBe('Running');
  });
});

describe('the Node of a machine', () => {
  test('gets finalizer, name and template in one patch, before the machine is Running', async () => {
    const world = start({ phase: 'Pending', noNode: true });
    world.nodes.cache.put(node());

    await world.reconcile();

    expect(world.nodes.done).toEqual(['patch m-1']);
    expect(world.nodes.patches).toEqual([
      { metadata: { finalizers: [NODE_FINALIZER], labels: { 'node.gardener.cloud/machine-name': 'm-1' } } },
    ]);
    expect(current(world).status?.currentStatus?.phase).toBe('Running');
  });

  test('gets taints from a live read, with its resourceVersion', async () => {
    const world = start({ phase: 'Running' });
    world.machines.put(
      machine((m) => {
        Object.assign(m, current(world));
        m.metadata = { ...m.metadata, resourceVersion: '2' };
        m.spec = { ...m.spec, nodeTemplate: { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } } };
      }),
    );
    world.nodes.live.set(
      'm-1',
      node((n) => {
        n.metadata.resourceVersion = '77';
        n.metadata.finalizers = [NODE_FINALIZER];
        n.metadata.labels['node.gardener.cloud/machine-name'] = 'm-1';
        n.spec.taints = [{ key: 'somebody', effect: 'NoExecute' }];
      }),
    );

    await world.reconcile();

    expect(world.nodes.patches[0]).toMatchObject({
      metadata: { resourceVersion: '77' },
      spec: {
        taints: [
          { key: 'somebody', effect: 'NoExecute' },
          { key: 'a', effect: 'NoSchedule' },
        ],
      },
    });
  });

  test('that is deleted takes its machine along, and nothing else happens to it', async () => {
    const world = start({ phase: 'Running' });
    world.nodes.cache.put(
      node((n) => {
        n.metadata.resourceVersion = '2';
        n.metadata.finalizers = [NODE_FINALIZER];
        n.metadata.labels['node.gardener.cloud/machine-name'] = 'm-1';
        n.metadata.deletionTimestamp = '2026-01-01T00:01:00Z';
      }),
    );

    const { writes, events } = await world.reconcile();

    expect(world.deletedMachines).toEqual(['uid-of-machine-m-1']);
    expect(writes).toEqual([]);
    expect(world.nodes.done).toEqual([]);
    expect(events.map(({ reason }) => reason)).toEqual(['NodeDeleted']);
  });

  test.each([
    { what: 'is gone when looked at live', live: undefined, deletes: ['uid-of-machine-m-1'] },
    {
      what: 'has come back as another one that is not ready',
      live: node((n) => {
        n.metadata.uid = 'new';
        n.status.conditions = [{ type: 'Ready', status: 'False' }];
      }),
      deletes: ['uid-of-machine-m-1'],
    },
    {
      what: 'has come back as another one that is ready, so not then',
      live: node((n) => Object.assign(n.metadata, { uid: 'new' })),
      deletes: [],
    },
    { what: 'is there all the same', live: node((n) => Object.assign(n.metadata, { uid: 'old' })), deletes: [] },
  ])('that was deleted before it had our finalizer takes its machine along: it $what', async ({ live, deletes }) => {
    const world = start({ phase: 'Pending', noNode: true });
    const lastSeen = node((n) => Object.assign(n.metadata, { uid: 'old' }));
    world.steps.lostNodes.noteDeleted(world.machines.list()[0] as Machine, lastSeen);
    world.nodes.live.set('m-1', live);

    await world.reconcile();

    expect(world.deletedMachines).toEqual(deletes);
  });

  test.each([
    { what: 'without our finalizer', change: () => undefined, counts: true },
    {
      what: 'without our finalizer, and not ready: by somebody who may not have seen its VM',
      change: (n: ReturnType<typeof node>) => void (n.status.conditions = [{ type: 'Ready', status: 'Unknown' }]),
      counts: false,
    },
    {
      what: 'with it: somebody took it away by force, or the cluster lost its data',
      change: (n: ReturnType<typeof node>) => void n.metadata.finalizers.push(NODE_FINALIZER),
      counts: false,
    },
    {
      what: 'with it, which came while the deletion was on its way',
      change: (n: ReturnType<typeof node>) => void n.metadata.finalizers.push(NODE_FINALIZER),
      protectedForMs: 59_999,
      counts: true,
    },
    {
      what: 'with it for longer than any deletion takes',
      change: (n: ReturnType<typeof node>) => void n.metadata.finalizers.push(NODE_FINALIZER),
      protectedForMs: 60_000,
      counts: false,
    },
    {
      what: 'with it, marked as deleted: somebody took it away by force',
      change: (n: ReturnType<typeof node>) => {
        n.metadata.finalizers.push(NODE_FINALIZER);
        n.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      },
      protectedForMs: 0,
      counts: false,
    },
    {
      what: "that is marked as nobody's",
      change: (n: ReturnType<typeof node>) => {
        n.metadata.annotations['node.machine.sapcloud.io/not-managed-by-mcm'] = '1';
      },
      counts: false,
    },
    {
      what: 'of another machine',
      change: (n: ReturnType<typeof node>) => {
        n.metadata.labels['node.gardener.cloud/machine-name'] = 'm-2';
        n.spec = { providerID: 'sim:///m-2' };
      },
      counts: false,
    },
  ])('that is gone was deleted: $what', ({ change, protectedForMs = Infinity, counts }) => {
    expect(wasUnprotected(node(change), machine(), new FakeWorld().machines, protectedForMs)).toBe(counts);
  });

  test.each([
    { what: 'while it got our finalizer takes its machine along', afterMs: 1_000, deletes: ['uid-of-machine-m-1'] },
    { what: 'by force, long after it got our finalizer, is a matter of health', afterMs: 60_000, deletes: [] },
  ])('that was deleted $what', async ({ afterMs, deletes }) => {
    const world = start({ phase: 'Pending', noNode: true });
    const unprotected = node((n) => void (n.metadata.labels['node.gardener.cloud/machine-name'] = 'm-1'));
    world.nodes.cache.put(unprotected);
    await world.reconcile();
    expect(JSON.stringify(world.nodes.patches)).toContain(NODE_FINALIZER);

    world.clock.advance(afterMs);
    world.nodes.cache.remove('m-1');
    world.nodes.live.set('m-1', undefined);
    const lastSeen = node((n) => void n.metadata.finalizers.push(NODE_FINALIZER));
    world.steps.lostNodes.noteDeleted(world.machines.list()[0] as Machine, lastSeen);
    await world.reconcile();

    expect(world.deletedMachines).toEqual(deletes);
  });

  test('that was deleted is forgotten with its Machine: so is what several steps remember', async () => {
    const world = start({ phase: 'Pending', noNode: true });
    const lastSeen = node((n) => Object.assign(n.metadata, { uid: 'old' }));
    world.steps.lostNodes.noteDeleted(world.machines.list()[0] as Machine, lastSeen);
    world.nodes.live.set('m-1', undefined);
    world.steps.forget('uid-of-machine-m-1');

    await world.reconcile();

    expect(world.deletedMachines).toEqual([]);
  });

  test('that another, older machine has is left alone', async () => {
    const world = start({ phase: 'Running', noNode: true });
    world.machines.put(
      machine((m) => {
        m.metadata.resourceVersion = '2';
        m.metadata.labels['node'] = 'n-1';
      }),
    );
    world.nodes.cache.put(node((n) => void (n.metadata.name = 'n-1')));
    world.machines.put(
      machine((m) => {
        m.metadata.name = 'm-0';
        m.metadata.labels['node'] = 'n-1';
        m.metadata.creationTimestamp = '2025-12-31T00:00:00Z';
      }),
    );

    await world.reconcile();

    expect(world.nodes.patches).toEqual([]);
  });

  test('that cannot be patched does not keep a machine without phase from getting one', async () => {
    const world = start({ phase: 'Pending', noNode: true });
    world.machines.put(
      machine((m) => {
        m.metadata.resourceVersion = '2';
        m.metadata.finalizers = [FINALIZER];
        m.status = {} as (typeof m)['status'];
      }),
    );
    world.classes.put(machineClass((c) => Object.assign(c.metadata, { finalizers: [FINALIZER] })));
    world.secrets.put(secret((s) => void (s.data['userData'] = '')));
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] });
    world.nodes.cache.put(node());
    world.nodes.failure = new ApiError(422, 'Invalid', 'no');

    for (let i = 0; i < 4; i++) {
      await world.reconcile();
      await world.settle();
    }

    expect(world.machines.get('default/m-1')?.status?.currentStatus?.phase).toBe('Running');
    expect(world.events.map(({ reason }) => reason)).toEqual(['NodeSyncRefused', 'VMAdopted', 'NodeJoined']);
  });

  test('that a webhook refuses to let change is asked for again after a pause, and not because of events', async () => {
    const world = start({ phase: 'Running', noNode: true });
    world.nodes.cache.put(node());
    let asked = 0;
    world.nodes.patch = () => {
      asked += 1;
      return Promise.reject(new ApiError(500, 'InternalError', 'failed calling webhook "a": timeout'));
    };
    for (let i = 0; i < 6; i++) await world.reconcile();
    const told = world.machines.get('default/m-1')?.metadata.annotations?.['machine.sapcloud.io/node-sync-refused'];

    // Once more, because a server that fails once works the next time.
    expect(asked).toBe(2);
    expect(told).toContain('failed calling webhook');
    world.clock.advance(10_000);
    await world.reconcile();
    await world.reconcile();
    expect(asked).toBe(3);
    world.clock.advance(10_000);
    await world.reconcile();
    expect(asked).toBe(3);
  });

  test('that cannot be patched does not keep its machine from being written', async () => {
    const world = start({ phase: 'Pending', noNode: true });
    world.nodes.cache.put(node());
    world.nodes.failure = new Error('conflict');

    const { error, writes } = await world.reconcile();

    expect(error).toBe(world.nodes.failure);
    expect(writes).toEqual(['status']);
  });
});
