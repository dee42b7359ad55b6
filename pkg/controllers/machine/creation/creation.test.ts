import { describe, expect, test } from '@jest/globals';

import { MINUTE, SECOND } from '../../../../test/durations.ts';
import { type BuiltMachine, machineClass, node, secret } from '../../../../test/builders.ts';
import type { FakeWorld, PassSeen } from '../../../../test/fakes/machine-world.ts';
import { newMachineWorld } from '../../../../test/fakes/new-machine-world.ts';
import { DriverError, type DriverCode } from '../../../driver/error.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { INITIALIZE_FAILED } from '../../machine-facts/original-texts.ts';
import { explain } from '../explain/explain.ts';

const FINALIZER = 'machine.sapcloud.io/machine-controller-manager';

/** A world with a class that is ready for use and one new machine. */
const start = (change?: (m: BuiltMachine) => void): FakeWorld =>
  newMachineWorld({
    userData: 'token: <<BOOTSTRAP_TOKEN>> name: <<MACHINE_NAME>>',
    ...(change && { machine: change }),
  });

/** Passes until nothing moves without an event from outside. */
async function run(world: FakeWorld): Promise<PassSeen> {
  let seen = await world.reconcile();
  for (let i = 0; i < 20; i++) {
    await world.settle();
    const before = world.machines.get('default/m-1');
    const calls = world.driver.calls.length;
    seen = await world.reconcile();
    if (world.machines.get('default/m-1') === before && world.driver.calls.length === calls) break;
  }
  return seen;
}

/** The Node joins as a kubelet would make it. */
function join(world: FakeWorld, change: (n: ReturnType<typeof node>) => void = () => undefined): void {
  world.nodes.cache.put(node(change));
}

describe('a new machine', () => {
  test('becomes Pending with two writes and one creation, and Running with one write more', async () => {
    const world = start();

    const pending = await run(world);

    expect(pending.machine).toMatchObject({
      metadata: { labels: { node: 'm-1' }, annotations: { 'machinepriority.machine.sapcloud.io': '3' } },
      spec: { providerID: 'sim:///m-1' },
      status: {
        currentStatus: { phase: 'Pending', timeoutActive: true, lastUpdateTime: '2026-01-01T00:00:00Z' },
        lastOperation: { type: 'Create', state: 'Processing', description: 'Creating machine on cloud provider' },
      },
    });
    expect(world.driver.calls).toEqual(['status', 'create']);
    expect(world.driver.userData).toBe('token: abcdef.0123456789abcdef name: m-1');
    expect(world.writes).toBe(2);

    world.clock.advance(30 * SECOND);
    join(world);
    const running = await run(world);

    expect(running.machine.status).toMatchObject({
      currentStatus: { phase: 'Running', lastUpdateTime: '2026-01-01T00:00:30Z' },
      lastOperation: {
        type: 'Create',
        state: 'Successful',
        description: 'Machine m-1 successfully joined the cluster',
      },
      conditions: [{ type: 'Ready', status: 'True' }],
    });
    expect(running.machine.status?.currentStatus).not.toHaveProperty('timeoutActive');
    expect(world.writes).toBe(3);
    expect(world.tokenCalls).toEqual(['ensure', 'remove']);
    expect(world.events.map(({ reason }) => reason)).toEqual(['VMCreated', 'NodeJoined']);
    expect(world.measured).toEqual(['created 0', 'joined 30000']);
  });

  test('keeps the priority that it was given', async () => {
    const world = start((m) => void (m.metadata.annotations['machinepriority.machine.sapcloud.io'] = '1'));

    const { machine: seen } = await run(world);

    expect(seen.spec.providerID).toBe('sim:///m-1');
    expect(seen.metadata.annotations).toMatchObject({ 'machinepriority.machine.sapcloud.io': '1' });
  });

  test('gets the finalizer first, and no VM before that is seen', async () => {
    const world = start((m) => {
      m.metadata.finalizers = ['foreign'];
    });

    const { machine: seen, writes } = await world.reconcile();

    expect(seen.metadata.finalizers).toEqual(['foreign', FINALIZER]);
    expect(writes).toEqual(['main']);
    await world.settle();
    expect(world.driver.calls).toEqual([]);
  });

  test('has its token deleted later when that fails at first, after a pause and not because of events', async () => {
    const world = start();
    await run(world);
    world.tokenFailures.push(new ApiError(500, 'InternalError', 'etcd is slow'));
    join(world);

    const running = await run(world);
    await run(world);

    expect(running.machine.status?.currentStatus?.phase).toBe('Running');
    expect(world.tokenCalls).toEqual(['ensure', 'remove']);
    world.clock.advance(5 * SECOND);
    await run(world);
    await run(world);
    expect(world.tokenCalls).toEqual(['ensure', 'remove', 'remove']);
  });

  test('has its token deleted later when we may not do so at first, and left to expire when we may not for as long as it lives', async () => {
    const world = start();
    await run(world);
    const forbidden = new ApiError(403, 'Forbidden', 'no');
    world.tokenFailures.push(forbidden, forbidden);
    join(world);
    await run(world);

    world.clock.advance(30 * SECOND);
    await run(world);
    expect(world.tokenCalls).toEqual(['ensure', 'remove']);
    world.clock.advance(30 * SECOND);
    await run(world);
    expect(world.tokenCalls).toEqual(['ensure', 'remove', 'remove']);

    world.tokenFailures.push(forbidden);
    world.clock.advance(3_600 * SECOND);
    await run(world);
    world.clock.advance(3_600 * SECOND);
    await run(world);
    expect(world.tokenCalls).toEqual(['ensure', 'remove', 'remove', 'remove']);
  });

  test('mints no token for user data that has no place for one, and will look for none', async () => {
    const world = start();
    world.secrets.put(
      secret((s) => {
        s.metadata.resourceVersion = '2';
      }),
    );
    await run(world);

    expect(world.tokenCalls).toEqual(['forgo']);
  });

  test('is not created twice when the write that records the VM is lost', async () => {
    const world = start();
    await world.reconcile();
    await world.settle();
    world.losesWrites = true;
    await world.reconcile();
    await world.settle();
    expect(world.events).toEqual([]);

    world.losesWrites = false;
    await run(world);

    expect(world.driver.calls).toEqual(['status', 'create']);
    expect(world.events.map(({ reason }) => reason)).toEqual(['VMCreated']);
  });

  test('takes over the VM that a killed process has made', async () => {
    const world = start();
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] });

    const { machine: seen } = await run(world);

    expect(world.driver.calls).toEqual(['status']);
    expect(world.tokenCalls).toEqual([]);
    expect(seen.status?.currentStatus?.phase).toBe('Pending');
    expect(world.events.map(({ reason }) => reason)).toEqual(['VMAdopted']);
  });

  test.each([
    { code: 'Aborted', told: 'VMCreated' },
    { code: 'Internal', told: 'VMAdopted' },
  ])('whose creation was answered with $code, and whose VM is there then, tells $told', async ({ code, told }) => {
    const world = start((m) => {
      m.status = {
        currentStatus: { phase: 'CrashLoopBackOff' },
        lastOperation: { type: 'Create', state: 'Failed', errorCode: code, description: 'Cluster c is paused' },
      };
    });
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] });

    await run(world);

    expect(world.events.map(({ reason }) => reason)).toEqual([told]);
  });

  test('trusts its record when the provider cannot tell', async () => {
    const world = start((m) => {
      m.spec.providerID = 'sim:///m-1';
      m.metadata.labels = { node: 'm-1' };
    });

    const { machine: seen } = await run(world);

    expect(world.driver.calls).toEqual(['status']);
    expect(seen.status?.currentStatus?.phase).toBe('Pending');
  });

  test('without target cluster becomes Available, with addresses', async () => {
    const world = start();
    world.hasTarget = false;
    const address = { type: 'InternalIP', address: '10.0.0.1' };
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'n-1', addresses: [address, address] });

    const { machine: seen } = await run(world);

    expect(seen.metadata.labels).toEqual({});
    expect(seen.status).toMatchObject({
      currentStatus: { phase: 'Available' },
      lastOperation: { type: 'Create', state: 'Successful', description: 'Created machine on cloud provider' },
      addresses: [{ type: 'Hostname', address: 'n-1' }, address],
    });
  });

  test.each([
    { type: 'ExternalIP', kept: ['Hostname n-1', 'ExternalIP 1.2.3.4'] },
    { type: 'InternalIP', kept: undefined },
  ] as const)('keeps addresses with a target cluster, too, if one is of type $type: $kept', async ({ type, kept }) => {
    const world = start();
    const addresses = [{ type, address: '1.2.3.4' }];
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'n-1', addresses });

    const { machine: seen } = await run(world);

    const shown = seen.status?.addresses?.map((one) => `${one.type} ${one.address}`);
    expect(shown?.toSorted()).toEqual(kept?.toSorted());
  });

  test.each<{ what: string; capacity: Record<string, string> | undefined; shown: object | undefined }>([
    { what: 'nothing', capacity: undefined, shown: undefined },
    { what: 'quantities', capacity: { memory: '8Gi', cpu: '4' }, shown: { cpu: '4', memory: '8Gi' } },
    {
      what: 'what is none, which the API server would refuse with all of the status',
      capacity: {
        cpu: 'four',
        memory: '8 GB',
        'x/gpu': '1',
        a: '-1',
        b: `${'0'.repeat(40)}1`,
        [`c/${'c'.repeat(99)}`]: '1',
      },
      shown: { 'x/gpu': '1' },
    },
  ])('shows as its resources, when the driver tells $what, $shown', async ({ capacity, shown }) => {
    const world = start();
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'n-1', addresses: [], capacity });

    const { machine: seen } = await run(world);

    expect(seen.status?.vmCapacity).toEqual(shown);
    expect(seen.status?.currentStatus?.phase).toBe('Pending');
  });

  test('does not write its resources again where the definitions of the original have dropped them', async () => {
    const world = start();
    const vm = { providerID: 'sim:///m-1', nodeName: 'n-1', addresses: [], capacity: { cpu: '4' } };
    world.driver.vms.set('m-1', vm);
    const { machine: seen } = await run(world);
    const { vmCapacity: _dropped, ...status } = seen.status ?? {};
    world.machines.put({ ...seen, status, metadata: { ...seen.metadata, resourceVersion: '9000' } });
    const before = world.writes;

    await run(world);

    expect(world.writes).toBe(before);
  });

  test('shows no more resources than a Node may have', async () => {
    const world = start();
    const capacity = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`r-${i}`, '1']));
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'n-1', addresses: [], capacity });

    const { machine: seen } = await run(world);

    expect(Object.keys(seen.status?.vmCapacity ?? {})).toHaveLength(20);
  });

  test('survives a repeated pass and a restart at every point', async () => {
    for (let restartAt = 0; restartAt < 12; restartAt++) {
      const world = start();
      for (let i = 0; i < 12; i++) {
        if (i === restartAt) world.restart();
        if (i === 6) join(world);
        await world.reconcile();
        await world.reconcile();
        await world.settle();
      }
      expect(world.driver.vms.size).toBe(1);
      expect(world.driver.calls.filter((call) => call === 'create')).toHaveLength(1);
      expect(world.machines.get('default/m-1')?.status?.currentStatus?.phase).toBe('Running');
    }
  });
});

describe('a class that cannot be used', () => {
  test.each([
    {
      what: 'missing',
      problem: 'MachineClass default/class-1 not found',
      spoil: (w: FakeWorld) => w.classes.remove('default/class-1'),
    },
    {
      what: 'of an unknown provider',
      problem: 'No driver is configured for provider "other"',
      spoil: (w: FakeWorld) =>
        w.classes.put(machineClass((c) => (Object.assign(c, { provider: 'other' }).metadata.resourceVersion = '2'))),
    },
    {
      what: 'invalid',
      problem: 'nodeTemplate.zone is empty',
      spoil: (w: FakeWorld) =>
        w.classes.put(
          machineClass((c) => {
            c.metadata.resourceVersion = '2';
            c.nodeTemplate.zone = '';
          }),
        ),
    },
    {
      what: 'without user data',
      problem: 'Secret default/secret-1 of MachineClass default/class-1 does not have key userData: add it.',
      spoil: (w: FakeWorld) =>
        w.secrets.put(secret((s) => void (Object.assign(s, { data: {} }).metadata.resourceVersion = '2'))),
    },
    {
      what: 'without its Secret',
      problem: 'Secret default/secret-1 of MachineClass default/class-1 does not exist: create it with key userData.',
      spoil: (w: FakeWorld) => w.secrets.remove('default/secret-1'),
    },
    {
      what: 'with the Secret of another namespace',
      problem: 'Secret other/secret-1 of MachineClass default/class-1 is in another namespace, which is not allowed:',
      spoil: (w: FakeWorld) =>
        w.classes.put(
          machineClass((c) => {
            c.metadata.resourceVersion = '2';
            c.secretRef = { name: 'secret-1', namespace: 'other' };
          }),
        ),
    },
  ])('$what is told once, and healed by correcting it', async ({ problem, spoil }) => {
    const world = start();
    const [goodClass, goodSecret] = [world.classes.get('default/class-1'), world.secrets.get('default/secret-1')];
    spoil(world);

    const { machine: seen, result } = await run(world);

    expect(seen.status?.lastOperation).toMatchObject({
      type: 'Create',
      state: 'Failed',
      description: expect.stringContaining(problem),
    });
    expect(result).toMatchObject({ waitingFor: 'the MachineClass or its Secret to be corrected' });
    expect(world.events.map(({ reason }) => reason)).toEqual(['InvalidClass']);
    expect(world.warnings).toMatchObject([
      { message: 'waiting for class', fields: { problem: expect.stringContaining(problem) } },
    ]);
    expect(world.driver.calls).toEqual([]);
    expect(world.writes).toBe(1);

    world.classes.put(machineClass((c) => Object.assign(c.metadata, { ...goodClass?.metadata, resourceVersion: '3' })));
    if (goodSecret !== undefined) {
      world.secrets.put({ ...goodSecret, metadata: { ...goodSecret.metadata, resourceVersion: '3' } });
    }
    const healed = await run(world);
    expect(healed.machine.status?.currentStatus?.phase).toBe('Pending');
  });

  test('is not used before its finalizer protects it', async () => {
    const world = start();
    world.classes.put(
      machineClass((c) => {
        c.metadata.resourceVersion = '2';
      }),
    );

    const { result } = await run(world);

    expect(result).toMatchObject({ waitingFor: 'the finalizer of the MachineClass' });
    expect(world.driver.calls).toEqual([]);
    expect(world.writes).toBe(0);
    world.clock.advance(30 * SECOND);
    expect((await run(world)).machine.status?.lastOperation?.description).toContain('is missing finalizer');
  });

  test('does not stop the creation timeout', async () => {
    const world = start();
    world.classes.remove('default/class-1');
    await run(world);
    world.clock.advance(20 * MINUTE);

    const { machine: seen } = await world.reconcile();

    expect(seen.status?.currentStatus?.phase).toBe('Failed');
    expect(seen.status?.lastOperation?.description).toContain('MachineClass default/class-1 not found');
  });
});

test('what another process has recorded of InitializeMachine says nothing of a creation: its class is not closed', async () => {
  const world = start((m) => {
    m.status.currentStatus = { phase: 'CrashLoopBackOff', lastUpdateTime: '2026-01-01T00:00:00Z' };
    m.status.lastOperation = {
      type: 'Create',
      state: 'Failed',
      errorCode: 'ResourceExhausted',
      description: `${INITIALIZE_FAILED}no more addresses. Initialize VM Instance`,
      lastUpdateTime: '2026-01-01T00:00:00Z',
    };
  });

  await world.reconcile();
  await world.settle();

  expect(world.driver.calls).toContain('status');
});

describe('a provider that takes its time', () => {
  const goesOn = (why: string): DriverError => new DriverError('Uninitialized', why);

  test('is asked again when it asks for it', async () => {
    const world = start();
    const hour = new DriverError('Uninitialized', 'comes with the next delivery', { retryAfterMs: 60 * MINUTE });
    world.driver.failures = { create: [hour] };

    expect((await run(world)).result).toMatchObject({ kind: 'requeue', afterMs: 20 * MINUTE });
    world.clock.advance(10 * MINUTE);
    await run(world);

    expect(world.driver.calls).toEqual(['status', 'create']);
  });

  test('is asked again soon, and told of as no failure: what it waits for, and in the end VMCreated', async () => {
    const world = start();
    world.driver.failures = { create: [goesOn('host is being wiped'), goesOn('host is being wiped')] };

    const first = await run(world);

    expect(first.machine.status?.currentStatus?.phase ?? '').toBe('');
    expect(first.machine.status?.lastOperation).toMatchObject({
      type: 'Create',
      state: 'Processing',
      description: 'The VM is being created: host is being wiped',
    });
    expect(first.result).toMatchObject({ kind: 'requeue', afterMs: 5 * SECOND });
    expect(explain(first.machine, 0)).toMatchObject({
      reason: 'Creating',
      message: 'The VM is being created: host is being wiped',
      waitingFor: 'the provider to create the VM',
    });
    for (let i = 0; i < 100; i++) await world.reconcile();
    expect([world.driver.calls, world.writes]).toEqual([['status', 'create'], 2]);

    // Whoever takes over: the same words again are no write.
    world.restart();
    world.clock.advance(5 * SECOND);
    await run(world);
    expect(world.writes).toBe(2);
    world.clock.advance(5 * SECOND);
    world.driver.failures = {};
    const made = await run(world);
    expect(made.machine.status?.currentStatus?.phase).toBe('Pending');
    expect(world.events.map(({ reason }) => reason)).toEqual(['VMCreated']);
    expect(world.warnings).toEqual([]);
  });

  test('is told of at the creation timeout, with what it waited for', async () => {
    const world = start();
    world.driver.failures['create'] = Array.from({ length: 300 }, () => goesOn('host is being wiped'));
    await run(world);
    world.clock.advance(20 * MINUTE);

    const { machine: seen, events } = await world.reconcile();

    const description = 'Machine m-1 failed to join the cluster in 20m0s. The VM is being created: host is being wiped';
    expect(seen.status).toMatchObject({
      currentStatus: { phase: 'Failed' },
      lastOperation: { type: 'Create', state: 'Failed', description },
    });
    expect(events).toMatchObject([{ reason: 'CreationTimeout', message: description }]);
  });
});

describe('a provider that fails', () => {
  const exhausted = (): DriverError => new DriverError('ResourceExhausted', 'no quota');

  test('is shown in the words of the original, and asked again when the wait is over', async () => {
    const world = start();
    world.driver.failures['create'] = [exhausted()];

    const failed = await run(world);

    expect(failed.machine.status).toMatchObject({
      currentStatus: { phase: 'CrashLoopBackOff' },
      lastOperation: {
        type: 'Create',
        state: 'Failed',
        errorCode: 'ResourceExhausted',
        description: 'Cloud provider message - machine codes error: code = [ResourceExhausted] message = [no quota]',
      },
    });
    expect(failed.result).toMatchObject({ kind: 'requeue', afterMs: 15 * SECOND });
    expect(world.writes).toBe(2);

    world.clock.advance(14 * SECOND);
    await run(world);
    expect(world.driver.calls).toEqual(['status', 'create']);
    world.clock.advance(SECOND);
    const retried = await run(world);
    expect(world.driver.calls).toEqual(['status', 'create', 'status', 'create']);
    expect(retried.machine.status?.currentStatus?.phase).toBe('Pending');
    expect(retried.machine.status?.lastOperation).not.toHaveProperty('errorCode');
  });

  test('is not asked again by events, however many', async () => {
    const world = start();
    world.driver.failures['create'] = [exhausted()];
    await run(world);
    for (let i = 0; i < 1_000; i++) await world.reconcile();

    expect(world.driver.calls).toEqual(['status', 'create']);
    expect(world.writes).toBe(2);
    expect([...world.warnings.map(({ message }) => message), ...world.infos]).toEqual(['driver call failed, retrying']);
    expect(world.events.map(({ reason }) => reason)).toEqual(['CreateFailed']);
  });

  test('is asked again at once when the input has changed', async () => {
    const world = start();
    world.driver.failures['create'] = [new DriverError('InvalidArgument', 'no such image')];
    await run(world);
    world.classes.put(
      machineClass((c) => {
        c.metadata.finalizers = [FINALIZER];
        c.metadata.resourceVersion = '2';
      }),
    );

    const { machine: seen } = await run(world);

    expect(seen.status?.currentStatus?.phase).toBe('Pending');
  });

  test('is not asked by a new process before the recorded wait is over', async () => {
    const world = start();
    world.driver.failures['create'] = [exhausted()];
    await run(world);
    world.restart();
    world.clock.advance(10 * SECOND);

    const waiting = await run(world);
    expect(waiting.result).toMatchObject({ kind: 'requeue', afterMs: 5 * SECOND });
    expect(world.driver.calls).toHaveLength(2);

    world.clock.advance(5 * SECOND);
    expect((await run(world)).machine.status?.currentStatus?.phase).toBe('Pending');
  });

  test('keeps or clears its scratch state as the code says', async () => {
    const world = start((m) => {
      m.status.lastKnownState = 'disk made';
    });
    world.driver.failures['create'] = [
      new DriverError('Unavailable', 'x'),
      new DriverError('Internal', 'x', { lastKnownState: 'nic made' }),
      new DriverError('Internal', 'x'),
    ];

    const states = [];
    for (let i = 0; i < 3; i++) {
      states.push((await run(world)).machine.status?.lastKnownState);
      world.clock.advance(MINUTE);
    }

    expect(states).toEqual(['disk made', 'nic made', undefined]);
  });

  test('that did not answer is asked for the VM first, and not for another one within 2 minutes', async () => {
    const world = start();
    world.driver.idempotentCreate = false;
    world.driver.failures['create'] = [new DriverError('Unavailable', 'gone', { unanswered: true })];
    await run(world);
    world.clock.advance(10 * SECOND);
    await run(world);
    expect(world.driver.calls).toEqual(['status', 'create', 'status']);

    for (let waitedMs = 10 * SECOND; waitedMs < 115 * SECOND; waitedMs += 15 * SECOND) {
      await run(world);
      await run(world);
      world.clock.advance(15 * SECOND);
    }
    expect(world.driver.calls.filter((call) => call === 'create')).toHaveLength(1);
    expect(world.driver.calls.filter((call) => call === 'status').length).toBeLessThan(10);
    world.clock.advance(15 * SECOND);
    await run(world);
    expect(world.driver.calls.filter((call) => call === 'create')).toHaveLength(2);
  });

  test('at the creation timeout leaves the machine Failed, with the code that autoscalers read', async () => {
    const world = start();
    world.driver.failures['create'] = Array.from({ length: 50 }, exhausted);
    await run(world);
    world.clock.advance(20 * MINUTE);

    const { machine: seen, events } = await world.reconcile();

    expect(seen.status).toMatchObject({
      currentStatus: { phase: 'Failed' },
      lastOperation: { type: 'Create', state: 'Failed', errorCode: 'ResourceExhausted' },
    });
    expect(events.map(({ reason }) => reason)).toEqual(['CreationTimeout']);
    const calls = world.driver.calls.length;
    world.clock.advance(60 * MINUTE);
    await run(world);
    expect(world.driver.calls).toHaveLength(calls);
  });

  test('is not blamed for a closed gate', async () => {
    const world = start();
    world.driver.failures['create'] = [new GateClosedError('outage', 'target', 'cluster target could not be reached')];

    const { machine: seen, result } = await run(world);

    expect(result).toMatchObject({ kind: 'requeue', afterMs: 5 * SECOND });
    expect(seen.status).toEqual({});
    world.clock.advance(5 * SECOND);
    expect((await run(world)).machine.status?.currentStatus?.phase).toBe('Pending');
  });

  test('is not blamed, nor asked again by events, for a call that we ended ourselves', async () => {
    const world = start();
    world.driver.failures['create'] = [new DriverError('Canceled', 'CreateMachine was aborted', { unanswered: true })];
    for (let i = 0; i < 5; i++) await run(world);

    expect(world.machines.get('default/m-1')?.status).toEqual({});
    expect(world.driver.calls).toEqual(['status', 'create']);
  });

  test('is shown although the write that should show it was lost', async () => {
    const world = start();
    world.driver.failures['create'] = [new DriverError('Internal', 'x', { lastKnownState: 'nic made' })];
    await world.reconcile();
    await world.settle();
    world.losesWrites = true;
    await world.reconcile();
    world.losesWrites = false;
    const { machine: seen } = await world.reconcile();

    expect(seen.status).toMatchObject({ currentStatus: { phase: 'CrashLoopBackOff' }, lastKnownState: 'nic made' });
  });

  test('that made the VM in the last moment is not held against the machine', async () => {
    const world = start();
    await world.reconcile();
    await world.settle();
    world.clock.advance(20 * MINUTE);

    expect((await run(world)).machine.status?.currentStatus?.phase).toBe('Pending');
  });

  test('that knows no VM of the id that the Machine was created with names field and remedy', async () => {
    const world = start((m) => void (m.spec.providerID = 'sim:///wrong'));

    const { machine: seen } = await run(world);

    expect(seen.status?.lastOperation).toMatchObject({
      errorCode: 'NotFound',
      description: expect.stringMatching(
        /no VM with ID sim:\/\/\/wrong \(spec\.providerID\); correct the field, or remove it/,
      ),
    });
    expect(world.driver.calls).not.toContain('create');
  });

  test('that returns no node name is asked again later', async () => {
    const world = start();
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: '', addresses: [] });

    const { machine: seen, result } = await run(world);

    expect(seen.spec.providerID).toBeUndefined();
    expect(seen.status?.lastOperation?.description).toContain('driver returned no node name');
    expect(result).toMatchObject({ kind: 'requeue', afterMs: 5 * SECOND });
  });
});

describe('a VM that needs initialization', () => {
  test('is initialized after its identity was recorded', async () => {
    const world = start();
    world.driver.methods.add('InitializeMachine');

    const first = await run(world);

    expect(world.driver.calls).toEqual(['status', 'create', 'initialize']);
    expect(first.machine.status?.currentStatus?.phase).toBe('Pending');
    expect(world.measured).toContain('initialized 0');
    // The identity, that the VM is to be initialized, and that it is Pending.
    expect(world.writes).toBe(3);
  });

  test('is not initialized before it is recorded that it is to be, also when that is refused', async () => {
    const world = start();
    world.driver.methods.add('InitializeMachine');
    await world.reconcile();
    await world.settle();
    world.writer.failures.push(undefined, new ApiError(500, 'InternalError', 'a webhook of machines/status fails'));
    await world.reconcile();
    world.writer.failures.push(new ApiError(500, 'InternalError', 'a webhook of machines/status fails'));
    await world.reconcile();
    await world.settle();
    expect(world.driver.calls).toEqual(['status', 'create']);

    await run(world);
    expect(world.driver.calls).toEqual(['status', 'create', 'initialize']);
  });

  describe('and whose process has died before it was recorded that it is to be initialized', () => {
    const NOT_SHOWN = new DriverError('NotFound', 'not shown yet');

    /** The next process sees the Machine with its provider ID and without a status. */
    async function restarted() {
      const world = start();
      world.driver.methods.add('InitializeMachine');
      await world.reconcile();
      await world.settle();
      world.writer.failures.push(undefined, new ApiError(0, 'Unreachable', 'the process dies'));
      await world.reconcile();
      expect(world.machines.get('default/m-1')).toMatchObject({ spec: { providerID: 'sim:///m-1' } });
      world.restart();
      world.driver.calls.length = 0;
      return world;
    }

    test.each([
      { what: 'GetMachineStatus does not find it yet', answers: [NOT_SHOWN] },
      { what: 'the driver is not up before', answers: [new DriverError('Unavailable', 'starting'), NOT_SHOWN] },
    ])('is initialized where $what', async ({ answers }) => {
      const world = await restarted();
      world.driver.failures['status'] = [...answers];
      for (const _ of answers) {
        await run(world);
        world.clock.advance(MINUTE);
      }

      expect(world.driver.calls).toEqual([...answers.map(() => 'status'), 'initialize']);
    });

    test.each([
      { what: 'works as a Node that the cache does not show yet', broken: undefined },
      { what: 'may work as a Node, which cannot be read', broken: new ApiError(0, 'Unreachable', 'away') },
    ])('is left as it is where it $what', async ({ broken }) => {
      const world = await restarted();
      world.nodes.live.set('m-1', node());
      world.nodes.readFailure = broken;
      world.driver.failures['status'] = [NOT_SHOWN];
      await run(world);

      expect(world.driver.calls).toEqual(['status']);
    });
  });

  test('is initialized again after a failure, and not created again', async () => {
    const world = start();
    world.driver.methods.add('InitializeMachine');
    world.driver.failures['initialize'] = [new DriverError('NotFound', 'not yet')];

    const failed = await run(world);

    expect(failed.machine.status).toMatchObject({
      currentStatus: { phase: 'CrashLoopBackOff' },
      lastOperation: {
        errorCode: 'NotFound',
        description:
          'Provider error: machine codes error: code = [NotFound] message = [not yet]. Initialize VM Instance',
      },
    });
    world.clock.advance(5 * SECOND);
    const done = await run(world);
    expect(world.driver.calls).toEqual(['status', 'create', 'initialize', 'initialize']);
    expect(done.machine.status?.currentStatus?.phase).toBe('Pending');
  });

  test('is recognised after a restart', async () => {
    const world = start();
    world.driver.methods.add('InitializeMachine');
    const result = { providerID: 'sim:///m-1', nodeName: 'm-1' };
    world.driver.vms.set('m-1', { ...result, addresses: [] });
    world.driver.failures['status'] = [new DriverError('Uninitialized', 'x', { result })];

    await run(world);

    expect(world.driver.calls).toEqual(['status', 'initialize']);
    expect(world.tokenCalls).toEqual(['find']);
  });

  test('says that the API server refuses its bootstrap token, and is initialized when that is over', async () => {
    const world = start();
    world.driver.methods.add('InitializeMachine');
    const result = { providerID: 'sim:///m-1', nodeName: 'm-1' };
    world.driver.vms.set('m-1', { ...result, addresses: [] });
    world.driver.failures['status'] = [new DriverError('Uninitialized', 'x', { result })];
    world.tokenFailure = new ApiError(403, 'Forbidden', 'secrets "bootstrap-token-x" is forbidden');
    await run(world);
    const { machine: refused } = await run(world);

    expect(refused.status).toMatchObject({
      currentStatus: { phase: 'CrashLoopBackOff' },
      lastOperation: {
        state: 'Failed',
        errorCode: 'VMBeingInitialized',
        description: 'Could not prepare the creation of the VM: secrets "bootstrap-token-x" is forbidden',
      },
    });

    world.tokenFailure = undefined;
    world.clock.advance(MINUTE);
    expect((await run(world)).machine.status?.currentStatus?.phase).toBe('Pending');
    expect(world.driver.calls).toEqual(['status', 'initialize']);
  });

  test.each<{ answers: readonly DriverCode[] }>([
    { answers: ['NotFound'] },
    { answers: ['Unimplemented'] },
    { answers: ['Unavailable', 'NotFound'] },
    { answers: ['PermissionDenied', 'Unimplemented'] },
    { answers: ['Unavailable', 'Unavailable', 'Uninitialized'] },
  ])(
    'is initialized when the process has died just before, also when GetMachineStatus answers $answers and its Node becomes healthy',
    async ({ answers }) => {
      const world = start();
      world.driver.methods.add('InitializeMachine');
      await world.reconcile();
      await world.settle();
      await world.reconcile();
      expect(world.machines.get('default/m-1')).toMatchObject({
        spec: { providerID: 'sim:///m-1' },
        status: { lastOperation: { errorCode: 'VMBeingInitialized', state: 'Processing' } },
      });

      world.restart();
      world.driver.failures['status'] = answers.map((code) => new DriverError(code, 'x'));
      for (const _ of answers) {
        await run(world);
        world.nodes.cache.put(node());
        world.clock.advance(MINUTE);
      }

      expect(world.driver.calls.at(-1)).toBe('initialize');
      expect(world.driver.calls.filter((call) => call === 'create')).toHaveLength(1);
    },
  );

  test('shows the addresses and resources that its end tells of', async () => {
    const world = start();
    world.driver.methods.add('InitializeMachine');
    const result = { providerID: 'sim:///m-1', nodeName: 'm-1' };
    const addresses = [{ type: 'ExternalIP', address: '192.0.2.1' }];
    world.driver.vms.set('m-1', { ...result, addresses, capacity: { cpu: '4' } });
    world.driver.failures['status'] = [new DriverError('Uninitialized', 'it has no floating IP yet', { result })];

    const { machine: seen } = await run(world);

    expect(seen.status).toMatchObject({
      addresses: [...addresses, { type: 'Hostname', address: 'm-1' }],
      vmCapacity: { cpu: '4' },
    });
  });

  test('of a driver that does not know the call is done', async () => {
    const world = start();
    world.driver.methods.add('InitializeMachine');
    world.driver.failures['initialize'] = [new DriverError('Unimplemented', 'x')];

    expect((await run(world)).machine.status?.currentStatus?.phase).toBe('Pending');
  });
});

describe('a VM with the name of an old Node', () => {
  const createAs = (world: FakeWorld, nodeName: string): void => {
    world.driver.create = ({ machine: m }) => {
      world.driver.calls.push('create');
      const vm = { providerID: `sim:///${m.metadata.name}`, nodeName, addresses: [] };
      world.driver.vms.set(m.metadata.name, vm);
      return Promise.resolve({ ...vm, lastKnownState: undefined });
    };
  };

  test.each([
    { what: 'of another VM', providerID: 'sim:///old', created: '2026-01-01T00:00:09Z', phase: 'Failed' },
    { what: 'older than the machine', providerID: '', created: '2025-12-31T00:00:00Z', phase: 'Failed' },
    { what: 'that joined while CreateMachine ran', providerID: '', created: '2026-01-01T00:00:01Z', phase: 'Pending' },
    {
      what: 'of the second in which the machine was made',
      providerID: '',
      created: '2026-01-01T00:00:00Z',
      phase: 'Pending',
    },
    { what: 'that shows this VM', providerID: 'sim:///m-1', created: '2025-12-31T00:00:00Z', phase: 'Pending' },
  ])('$what becomes $phase', async ({ providerID, created, phase }) => {
    const world = start();
    createAs(world, 'ip-10-0-0-1');
    join(world, (n) => {
      n.metadata.name = 'ip-10-0-0-1';
      n.metadata.creationTimestamp = created;
      n.spec = { providerID };
      n.status.conditions = [];
    });

    const { machine: seen } = await run(world);

    expect(seen.status?.currentStatus?.phase).toBe(phase);
    expect(seen.spec.providerID).toBe('sim:///m-1');
    if (phase === 'Pending') return;
    expect(world.failures).toEqual(['stale-node']);
    expect(seen.status?.lastOperation?.description).toBe('VM using old node obj');
    expect(seen.metadata.labels).toEqual({});
  });
});
