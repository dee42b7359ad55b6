import { describe, expect, test } from '@jest/globals';

import { MINUTE } from '../../../../test/durations.ts';
import { machine, node } from '../../../../test/builders.ts';
import { newMachineWorld } from '../../../../test/fakes/new-machine-world.ts';
import type { Node } from '../../../apis/wire.ts';
import { DriverError } from '../../../driver/error.ts';
import {
  NODE_FINALIZER,
  READY,
  type Setup,
  joinedMachine,
  currentMachine,
} from '../../../../test/fakes/joined-machine.ts';

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
      const world = joinedMachine(setup);

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
      const cached = joinedMachine({ phase: 'CrashLoopBackOff', last: NOT_CREATED });
      world.machines.put({
        ...currentMachine(cached),
        metadata: { ...currentMachine(cached).metadata, resourceVersion: '500' },
      });
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
    const world = joinedMachine({ phase: 'CrashLoopBackOff', last });
    const { uid } = currentMachine(world).metadata;
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
    const world = joinedMachine({ phase: 'CrashLoopBackOff', last });
    const { uid } = currentMachine(world).metadata;
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
    const world = joinedMachine({ phase: 'Running', noLabel: true, noNode: true });
    const { events } = await world.reconcile();

    expect(events.map(({ reason, message }) => [reason, message])).toEqual([
      [
        'Unhealthy',
        expect.stringMatching(/^Label node of the Machine is missing, .* set it to the name of its Node\.$/),
      ],
    ]);
  });

  test('mirrors conditions only when they say something new', async () => {
    const world = joinedMachine({
      phase: 'Running',
      conditions: [{ ...READY, message: 'a new heartbeat' } as typeof READY],
    });
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
    const world = joinedMachine({ phase: 'Unknown' });
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
    const world = joinedMachine({ phase: 'Running', conditions: [NOT_READY] });
    world.machines.put(
      machine((m) => {
        Object.assign(m, currentMachine(world));
        m.metadata = { ...m.metadata, resourceVersion: '2' };
        m.status.currentStatus = { phase: 'Running', preserveExpiryTime: '2026-02-01T00:00:00Z' };
      }),
    );

    const { machine: seen } = await world.reconcile();

    expect(seen.status?.currentStatus).toMatchObject({ phase: 'Unknown', preserveExpiryTime: '2026-02-01T00:00:00Z' });
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
    const world = joinedMachine(setup);
    await world.reconcile();
    const [writes, requests] = [world.writes, world.nodes.done.length];

    for (let i = 0; i < 200; i++) await world.reconcile();

    expect(world.writes).toBe(writes);
    expect(world.nodes.done).toHaveLength(requests);
  });
});

describe('the creation timeout', () => {
  test('of a VM counts from when it was confirmed, not from the creation of the machine', async () => {
    const world = joinedMachine({ phase: 'Pending', mirrored: [], noNode: true });
    world.machines.put(
      machine((m) => {
        Object.assign(m, currentMachine(world));
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
    const world = joinedMachine({ phase: 'Pending', noNode: true });
    world.machines.put(
      machine((m) => {
        Object.assign(m, currentMachine(world));
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
    const world = joinedMachine({ phase: 'Running' });
    world.clock.advance(600 * MINUTE);

    expect((await world.reconcile()).machine.status?.currentStatus?.phase).toBe('Running');
  });
});
