import { describe, expect, test } from '@jest/globals';

import { MINUTE, SECOND } from '../../../../test/durations.ts';
import { machineClass, secret } from '../../../../test/builders.ts';
import type { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { DriverError } from '../../../driver/error.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { INITIALIZE_FAILED } from '../../machine-facts/original-texts.ts';
import { newMachine, runUntilStill, joinNode } from '../../../../test/fakes/created-machine.ts';

const FINALIZER = 'machine.sapcloud.io/machine-controller-manager';

describe('a new machine', () => {
  test('becomes Pending with two writes and one creation, and Running with one write more', async () => {
    const world = newMachine();

    const pending = await runUntilStill(world);

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
    joinNode(world);
    const running = await runUntilStill(world);

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
    const world = newMachine((m) => void (m.metadata.annotations['machinepriority.machine.sapcloud.io'] = '1'));

    const { machine: seen } = await runUntilStill(world);

    expect(seen.spec.providerID).toBe('sim:///m-1');
    expect(seen.metadata.annotations).toMatchObject({ 'machinepriority.machine.sapcloud.io': '1' });
  });

  test('gets the finalizer first, and no VM before that is seen', async () => {
    const world = newMachine((m) => {
      m.metadata.finalizers = ['foreign'];
    });

    const { machine: seen, writes } = await world.reconcile();

    expect(seen.metadata.finalizers).toEqual(['foreign', FINALIZER]);
    expect(writes).toEqual(['main']);
    await world.settle();
    expect(world.driver.calls).toEqual([]);
  });

  test('has its token deleted later when that fails at first, after a pause and not because of events', async () => {
    const world = newMachine();
    await runUntilStill(world);
    world.tokenFailures.push(new ApiError(500, 'InternalError', 'etcd is slow'));
    joinNode(world);

    const running = await runUntilStill(world);
    await runUntilStill(world);

    expect(running.machine.status?.currentStatus?.phase).toBe('Running');
    expect(world.tokenCalls).toEqual(['ensure', 'remove']);
    world.clock.advance(5 * SECOND);
    await runUntilStill(world);
    await runUntilStill(world);
    expect(world.tokenCalls).toEqual(['ensure', 'remove', 'remove']);
  });

  test('has its token deleted later when we may not do so at first, and left to expire when we may not for as long as it lives', async () => {
    const world = newMachine();
    await runUntilStill(world);
    const forbidden = new ApiError(403, 'Forbidden', 'no');
    world.tokenFailures.push(forbidden, forbidden);
    joinNode(world);
    await runUntilStill(world);

    world.clock.advance(30 * SECOND);
    await runUntilStill(world);
    expect(world.tokenCalls).toEqual(['ensure', 'remove']);
    world.clock.advance(30 * SECOND);
    await runUntilStill(world);
    expect(world.tokenCalls).toEqual(['ensure', 'remove', 'remove']);

    world.tokenFailures.push(forbidden);
    world.clock.advance(3_600 * SECOND);
    await runUntilStill(world);
    world.clock.advance(3_600 * SECOND);
    await runUntilStill(world);
    expect(world.tokenCalls).toEqual(['ensure', 'remove', 'remove', 'remove']);
  });

  test('mints no token for user data that has no place for one, and will look for none', async () => {
    const world = newMachine();
    world.secrets.put(
      secret((s) => {
        s.metadata.resourceVersion = '2';
      }),
    );
    await runUntilStill(world);

    expect(world.tokenCalls).toEqual(['forgo']);
  });

  test('is not created twice when the write that records the VM is lost', async () => {
    const world = newMachine();
    await world.reconcile();
    await world.settle();
    world.losesWrites = true;
    await world.reconcile();
    await world.settle();
    expect(world.events).toEqual([]);

    world.losesWrites = false;
    await runUntilStill(world);

    expect(world.driver.calls).toEqual(['status', 'create']);
    expect(world.events.map(({ reason }) => reason)).toEqual(['VMCreated']);
  });

  test('takes over the VM that a killed process has made', async () => {
    const world = newMachine();
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] });

    const { machine: seen } = await runUntilStill(world);

    expect(world.driver.calls).toEqual(['status']);
    expect(world.tokenCalls).toEqual([]);
    expect(seen.status?.currentStatus?.phase).toBe('Pending');
    expect(world.events.map(({ reason }) => reason)).toEqual(['VMAdopted']);
  });

  test.each([
    { code: 'NotFound', reason: 'VMNotFound', type: 'Warning' },
    { code: 'Unimplemented', reason: 'VMAdopted', type: 'Normal' },
  ] as const)(
    'trusts its record when the provider cannot tell; after $code, it tells so by Event $reason',
    async ({ code, reason, type }) => {
      const world = newMachine((m) => {
        m.spec.providerID = 'sim:///m-1';
        m.metadata.labels = { node: 'm-1' };
      });
      world.driver.failures['status'] = [new DriverError(code, 'no')];

      const { machine: seen } = await runUntilStill(world);

      expect(world.driver.calls).toEqual(['status']);
      expect(seen.spec.providerID).toBe('sim:///m-1');
      expect(seen.status?.currentStatus?.phase).toBe('Pending');
      expect(world.events).toMatchObject([{ reason, type }]);
      const isTold = world.events[0]?.message.includes(`the UID of this Machine (${seen.metadata.uid})`);
      expect(isTold).toBe(code === 'NotFound');
    },
  );

  test.each([
    { code: 'Aborted', told: 'VMCreated' },
    { code: 'Internal', told: 'VMAdopted' },
  ])('whose creation was answered with $code, and whose VM is there then, tells $told', async ({ code, told }) => {
    const world = newMachine((m) => {
      m.status = {
        currentStatus: { phase: 'CrashLoopBackOff' },
        lastOperation: { type: 'Create', state: 'Failed', errorCode: code, description: 'Cluster c is paused' },
      };
    });
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] });

    await runUntilStill(world);

    expect(world.events.map(({ reason }) => reason)).toEqual([told]);
  });

  test('without target cluster becomes Available, with addresses', async () => {
    const world = newMachine();
    world.hasTarget = false;
    const address = { type: 'InternalIP', address: '10.0.0.1' };
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'n-1', addresses: [address, address] });

    const { machine: seen } = await runUntilStill(world);

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
    const world = newMachine();
    const addresses = [{ type, address: '1.2.3.4' }];
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'n-1', addresses });

    const { machine: seen } = await runUntilStill(world);

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
    const world = newMachine();
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'n-1', addresses: [], capacity });

    const { machine: seen } = await runUntilStill(world);

    expect(seen.status?.vmCapacity).toEqual(shown);
    expect(seen.status?.currentStatus?.phase).toBe('Pending');
  });

  test('does not write its resources again where the definitions of the original have dropped them', async () => {
    const world = newMachine();
    const vm = { providerID: 'sim:///m-1', nodeName: 'n-1', addresses: [], capacity: { cpu: '4' } };
    world.driver.vms.set('m-1', vm);
    const { machine: seen } = await runUntilStill(world);
    const { vmCapacity: _dropped, ...status } = seen.status ?? {};
    world.machines.put({ ...seen, status, metadata: { ...seen.metadata, resourceVersion: '9000' } });
    const before = world.writes;

    await runUntilStill(world);

    expect(world.writes).toBe(before);
  });

  test('shows no more resources than a Node may have', async () => {
    const world = newMachine();
    const capacity = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`r-${i}`, '1']));
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'n-1', addresses: [], capacity });

    const { machine: seen } = await runUntilStill(world);

    expect(Object.keys(seen.status?.vmCapacity ?? {})).toHaveLength(20);
  });

  test('survives a repeated pass and a restart at every point', async () => {
    for (let restartAt = 0; restartAt < 12; restartAt++) {
      const world = newMachine();
      for (let i = 0; i < 12; i++) {
        if (i === restartAt) world.restart();
        if (i === 6) joinNode(world);
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
    const world = newMachine();
    const [goodClass, goodSecret] = [world.classes.get('default/class-1'), world.secrets.get('default/secret-1')];
    spoil(world);

    const { machine: seen, result } = await runUntilStill(world);

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
    const healed = await runUntilStill(world);
    expect(healed.machine.status?.currentStatus?.phase).toBe('Pending');
  });

  test('is not used before its finalizer protects it', async () => {
    const world = newMachine();
    world.classes.put(
      machineClass((c) => {
        c.metadata.resourceVersion = '2';
      }),
    );

    const { result } = await runUntilStill(world);

    expect(result).toMatchObject({ waitingFor: 'the finalizer of the MachineClass' });
    expect(world.driver.calls).toEqual([]);
    expect(world.writes).toBe(0);
    world.clock.advance(30 * SECOND);
    expect((await runUntilStill(world)).machine.status?.lastOperation?.description).toContain('is missing finalizer');
  });

  test('does not stop the creation timeout', async () => {
    const world = newMachine();
    world.classes.remove('default/class-1');
    await runUntilStill(world);
    world.clock.advance(20 * MINUTE);

    const { machine: seen } = await world.reconcile();

    expect(seen.status?.currentStatus?.phase).toBe('Failed');
    expect(seen.status?.lastOperation?.description).toContain('MachineClass default/class-1 not found');
  });
});

test('what another process has recorded of InitializeMachine says nothing of a creation: its class is not closed', async () => {
  const world = newMachine((m) => {
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
      what: 'that joined while CreateMachine ran, with an ID of another scheme',
      providerID: 'k3s://ip-10-0-0-1',
      created: '2026-01-01T00:00:01Z',
      phase: 'Pending',
    },
    {
      what: 'older than the machine, with an ID of another scheme',
      providerID: 'k3s://ip-10-0-0-1',
      created: '2025-12-31T00:00:00Z',
      phase: 'Failed',
    },
    {
      what: 'of the second in which the machine was made',
      providerID: '',
      created: '2026-01-01T00:00:00Z',
      phase: 'Pending',
    },
    { what: 'that shows this VM', providerID: 'sim:///m-1', created: '2025-12-31T00:00:00Z', phase: 'Pending' },
  ])('$what becomes $phase', async ({ providerID, created, phase }) => {
    const world = newMachine();
    createAs(world, 'ip-10-0-0-1');
    joinNode(world, (n) => {
      n.metadata.name = 'ip-10-0-0-1';
      n.metadata.creationTimestamp = created;
      n.spec = { providerID };
      n.status.conditions = [];
    });

    const { machine: seen } = await runUntilStill(world);

    expect(seen.status?.currentStatus?.phase).toBe(phase);
    expect(seen.spec.providerID).toBe('sim:///m-1');
    if (phase === 'Pending') return;
    expect(world.failures).toEqual(['stale-node']);
    expect(seen.status?.lastOperation?.description).toBe('VM using old node obj');
    expect(seen.metadata.labels).toEqual({});
  });

  test.each([
    { what: 'of another VM', providerID: 'sim:///old', created: '2025-12-31T00:00:00Z', phase: 'Failed' },
    // After a restore, each of these may be its own.
    { what: 'of a VM of another scheme', providerID: 'k3s://old', created: '2025-12-31T00:00:00Z', phase: 'Running' },
    { what: 'of no VM', providerID: '', created: '2025-12-31T00:00:00Z', phase: 'Running' },
    { what: 'of another VM, but younger', providerID: 'sim:///old', created: '2026-01-01T00:00:09Z', phase: 'Running' },
  ])('$what, whose creation was not answered, becomes $phase', async ({ providerID, created, phase }) => {
    const world = newMachine();
    world.driver.create = ({ machine: m }) => {
      world.driver.vms.set(m.metadata.name, { providerID: 'sim:///m-1', nodeName: 'ip-10-0-0-1', addresses: [] });
      return Promise.reject(new DriverError('DeadlineExceeded', 'slow'));
    };
    joinNode(world, (n) => {
      n.metadata.name = 'ip-10-0-0-1';
      n.metadata.creationTimestamp = created;
      n.metadata.labels = {};
      n.spec = { providerID };
    });
    await runUntilStill(world);
    world.clock.advance(MINUTE);

    const { machine: seen } = await runUntilStill(world);

    expect(world.driver.calls).toEqual(['status', 'status']);
    expect(seen.status?.currentStatus?.phase).toBe(phase);
    expect(world.failures).toEqual(phase === 'Failed' ? ['stale-node'] : []);
  });
});
