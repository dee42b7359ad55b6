import { describe, expect, test } from '@jest/globals';

import { MINUTE, SECOND } from '../../../../test/durations.ts';
import { node } from '../../../../test/builders.ts';
import { NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { DriverError, type DriverCode } from '../../../driver/error.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { newMachine, runUntilStill } from '../../../../test/fakes/created-machine.ts';
import { explain } from '../explain/explain.ts';
import { isVMRefused } from '../../machine-facts/joining.ts';
import { refusedSinceMs } from './waiting-since.ts';

/** A machine whose creation was refused by the API server, before its VM came all the same. */
const NOT_PREPARED = {
  currentStatus: { phase: 'CrashLoopBackOff' },
  lastOperation: {
    type: 'Create',
    state: 'Failed',
    errorCode: 'PreparationFailed',
    description: 'Could not prepare the creation of the VM: no',
  },
} as const;

describe('a VM that needs initialization', () => {
  test('is initialized after its identity was recorded', async () => {
    const world = newMachine();
    world.driver.methods.add('InitializeMachine');

    const first = await runUntilStill(world);

    expect(world.driver.calls).toEqual(['status', 'create', 'initialize']);
    expect(first.machine.status?.currentStatus?.phase).toBe('Pending');
    expect(world.measured).toContain('initialized 0');
    // The identity, that the VM is to be initialized, and that it is Pending.
    expect(world.writes).toBe(3);
  });

  test('is not initialized before it is recorded that it is to be, also when that is refused', async () => {
    const world = newMachine();
    world.driver.methods.add('InitializeMachine');
    await world.reconcile();
    await world.settle();
    for (let i = 0; i < 2; i++) {
      world.writer.failures.push(new ApiError(500, 'InternalError', 'a webhook of machines/status fails'));
      await world.reconcile();
      await world.settle();
    }
    expect(world.driver.calls).toEqual(['status', 'create']);
    expect(world.machines.get('default/m-1')?.spec?.providerID).toBeUndefined();

    await runUntilStill(world);
    expect(world.driver.calls).toEqual(['status', 'create', 'initialize']);
  });

  test.each([
    { what: 'is new', status: undefined },
    { what: 'had failed before', status: NOT_PREPARED },
  ])(
    'is initialized where the process died when it recorded that VM for a machine that $what, also when its Node is healthy by then',
    async ({ status }) => {
      const world = newMachine((m) => {
        if (status !== undefined) m.status = structuredClone(status);
      });
      world.driver.methods.add('InitializeMachine');
      await world.reconcile();
      await world.settle();
      // Of the two writes of that pass the second is lost.
      world.writer.failures.push(undefined, new ApiError(0, 'Unreachable', 'the process dies'));
      await world.reconcile();

      world.restart();
      world.nodes.cache.put(node());
      const result = { providerID: 'sim:///m-1', nodeName: 'm-1' };
      const away = new DriverError('Unavailable', 'starting');
      world.driver.failures['status'] = [away, away, new DriverError('Uninitialized', 'x', { result })];
      for (let i = 0; i < 30 && !world.driver.calls.includes('initialize'); i++) {
        const { machine } = await world.reconcile();
        expect(machine.status?.currentStatus?.phase).not.toBe('Running');
        await world.settle();
        world.clock.advance(SECOND);
      }
      expect(world.driver.calls.at(-1)).toBe('initialize');
      expect((await runUntilStill(world)).machine.status?.currentStatus?.phase).toBe('Running');
    },
  );

  test.each([
    { aways: 0, last: 'Uninitialized' as const },
    { aways: 0, last: 'NotFound' as const },
    { aways: 1, last: 'Uninitialized' as const },
    { aways: 2, last: 'NotFound' as const },
  ])(
    'is initialized where its record was refused, and the process dies when that has ended; the driver is away $aways times, then $last',
    async ({ aways, last }) => {
      const world = newMachine();
      world.driver.methods.add('InitializeMachine');
      await world.reconcile();
      await world.settle();
      const no = new ApiError(403, 'Forbidden', 'a policy says no');
      world.writer.failures.push(undefined, no);
      await world.reconcile().catch(() => undefined);
      const since = world.machines.get('default/m-1')?.status?.currentStatus?.lastUpdateTime;
      for (let i = 0; i < 2; i++) {
        world.clock.advance(MINUTE);
        world.writer.failures.push(no);
        await world.reconcile().catch(() => undefined);
        const machine = world.machines.get('default/m-1') as Machine;
        expect(explain(machine, world.clock.now()).reason).toBe('RecordRefused');
        const { status } = machine;
        expect(status?.currentStatus).toEqual({ phase: 'CrashLoopBackOff', lastUpdateTime: since });
        expect(status?.machineConditions).toEqual(
          expect.arrayContaining([
            expect.objectContaining({ type: 'VMCreated', status: 'True', reason: 'RecordRefused' }),
            expect.objectContaining({ type: 'NodeJoined', status: 'False', reason: 'NotRecorded' }),
            expect.objectContaining({ type: 'RecordRefused', status: 'True' }),
          ]),
        );
      }
      world.clock.advance(MINUTE);
      // Accepted; the next write is lost.
      world.writer.failures.push(undefined, new ApiError(0, 'Unreachable', 'the process dies'));
      await world.reconcile().catch(() => undefined);
      world.writer.failures.length = 0;
      expect(world.machines.get('default/m-1')?.spec?.providerID).toBe('sim:///m-1');

      world.restart();
      world.nodes.cache.put(node());
      const result = { providerID: 'sim:///m-1', nodeName: 'm-1' };
      const away = new DriverError('Unavailable', 'starting');
      world.driver.failures['status'] = [
        ...Array.from({ length: aways }, () => away),
        new DriverError(last, 'x', { result }),
      ];
      for (let i = 0; i < 60 && !world.driver.calls.includes('initialize'); i++) {
        const { machine } = await world.reconcile();
        expect(machine.status?.currentStatus?.phase).not.toBe('Running');
        await world.settle();
        world.clock.advance(SECOND);
      }
      expect(world.driver.calls.at(-1)).toBe('initialize');
    },
  );

  test.each([
    { what: 'when that has failed', state: 'Failed', providerID: '', isRefused: true },
    { what: 'not while it goes on', state: 'Processing', providerID: '', isRefused: false },
    { what: 'not when it is recorded', state: 'Failed', providerID: 'sim:///m-1', isRefused: false },
  ] as const)('counts as refused by the API server $what', ({ state, providerID, isRefused }) => {
    const currentStatus = { phase: 'CrashLoopBackOff', lastUpdateTime: '2026-01-01T00:00:00Z' } as const;
    const lastOperation = { type: 'Create', state, errorCode: 'VMBeingInitialized' } as const;
    const since = refusedSinceMs({ spec: { providerID }, status: { currentStatus, lastOperation } });

    expect(since !== undefined).toBe(isRefused);
  });

  test.each([
    { phase: 'CrashLoopBackOff', is: true },
    { phase: 'Failed', is: false },
  ] as const)('and has none in its record is said to be refused in phase $phase: $is', ({ phase, is }) => {
    const lastOperation = { type: 'Create', state: 'Failed', errorCode: 'VMBeingInitialized' } as const;

    expect(isVMRefused({ spec: {}, status: { currentStatus: { phase }, lastOperation } })).toBe(is);
  });

  test('that was never recorded, and is gone, leaves the code of the next creation as it is', async () => {
    const world = newMachine();
    world.driver.methods.add('InitializeMachine');
    await world.reconcile();
    await world.settle();
    world.writer.failures.push(undefined, new ApiError(0, 'Unreachable', 'the process dies'));
    await world.reconcile().catch(() => undefined);
    world.restart();
    world.driver.vms.clear();
    world.clock.advance(10 * MINUTE);
    world.driver.failures['create'] = [new DriverError('ResourceExhausted', 'no capacity')];

    await runUntilStill(world);

    expect(world.machines.get('default/m-1')?.status?.lastOperation).toMatchObject({ errorCode: 'ResourceExhausted' });
  });

  describe('and of which nothing but its identity is recorded, as by an earlier version whose process has died', () => {
    const NOT_SHOWN = new DriverError('NotFound', 'not shown yet');

    function restarted() {
      const world = newMachine((m) => {
        m.spec.providerID = 'sim:///m-1';
        m.metadata.labels = { ...m.metadata.labels, [NODE_LABEL]: 'm-1' };
      });
      world.driver.methods.add('InitializeMachine');
      world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] });
      return world;
    }

    test.each([
      { what: 'GetMachineStatus does not find it yet', answers: [NOT_SHOWN] },
      { what: 'the driver is not up before', answers: [new DriverError('Unavailable', 'starting'), NOT_SHOWN] },
    ])('is initialized where $what', async ({ answers }) => {
      const world = restarted();
      world.driver.failures['status'] = [...answers];
      for (const _ of answers) {
        await runUntilStill(world);
        world.clock.advance(MINUTE);
      }

      expect(world.driver.calls).toEqual([...answers.map(() => 'status'), 'initialize']);
    });

    test.each([
      { what: 'works as a Node that the cache does not show yet', broken: undefined },
      { what: 'may work as a Node, which cannot be read', broken: new ApiError(0, 'Unreachable', 'away') },
    ])('is left as it is where it $what', async ({ broken }) => {
      const world = restarted();
      world.nodes.live.set('m-1', node());
      world.nodes.readFailure = broken;
      world.driver.failures['status'] = [NOT_SHOWN];
      await runUntilStill(world);

      expect(world.driver.calls).toEqual(['status']);
    });
  });

  test('is initialized again after a failure, and not created again', async () => {
    const world = newMachine();
    world.driver.methods.add('InitializeMachine');
    world.driver.failures['initialize'] = [new DriverError('NotFound', 'not yet')];

    const failed = await runUntilStill(world);

    expect(failed.machine.status).toMatchObject({
      currentStatus: { phase: 'CrashLoopBackOff' },
      lastOperation: {
        errorCode: 'NotFound',
        description:
          'Provider error: machine codes error: code = [NotFound] message = [not yet]. Initialize VM Instance',
      },
    });
    world.clock.advance(5 * SECOND);
    const done = await runUntilStill(world);
    expect(world.driver.calls).toEqual(['status', 'create', 'initialize', 'initialize']);
    expect(done.machine.status?.currentStatus?.phase).toBe('Pending');
  });

  test('is recognised after a restart', async () => {
    const world = newMachine();
    world.driver.methods.add('InitializeMachine');
    const result = { providerID: 'sim:///m-1', nodeName: 'm-1' };
    world.driver.vms.set('m-1', { ...result, addresses: [] });
    world.driver.failures['status'] = [new DriverError('Uninitialized', 'x', { result })];

    await runUntilStill(world);

    expect(world.driver.calls).toEqual(['status', 'initialize']);
    expect(world.tokenCalls).toEqual(['find']);
  });

  test('says that the API server refuses its bootstrap token, and is initialized when that is over', async () => {
    const world = newMachine();
    world.driver.methods.add('InitializeMachine');
    const result = { providerID: 'sim:///m-1', nodeName: 'm-1' };
    world.driver.vms.set('m-1', { ...result, addresses: [] });
    world.driver.failures['status'] = [new DriverError('Uninitialized', 'x', { result })];
    world.tokenFailure = new ApiError(403, 'Forbidden', 'secrets "bootstrap-token-x" is forbidden');
    await runUntilStill(world);
    const { machine: refused } = await runUntilStill(world);

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
    expect((await runUntilStill(world)).machine.status?.currentStatus?.phase).toBe('Pending');
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
      const world = newMachine();
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
        await runUntilStill(world);
        world.nodes.cache.put(node());
        world.clock.advance(MINUTE);
      }

      expect(world.driver.calls.at(-1)).toBe('initialize');
      expect(world.driver.calls.filter((call) => call === 'create')).toHaveLength(1);
    },
  );

  test('shows the addresses and resources that its end tells of', async () => {
    const world = newMachine();
    world.driver.methods.add('InitializeMachine');
    const result = { providerID: 'sim:///m-1', nodeName: 'm-1' };
    const addresses = [{ type: 'ExternalIP', address: '192.0.2.1' }];
    world.driver.vms.set('m-1', { ...result, addresses, capacity: { cpu: '4' } });
    world.driver.failures['status'] = [new DriverError('Uninitialized', 'it has no floating IP yet', { result })];

    const { machine: seen } = await runUntilStill(world);

    expect(seen.status).toMatchObject({
      addresses: [...addresses, { type: 'Hostname', address: 'm-1' }],
      vmCapacity: { cpu: '4' },
    });
  });

  test('of a driver that does not know the call is done', async () => {
    const world = newMachine();
    world.driver.methods.add('InitializeMachine');
    world.driver.failures['initialize'] = [new DriverError('Unimplemented', 'x')];

    expect((await runUntilStill(world)).machine.status?.currentStatus?.phase).toBe('Pending');
  });
});
