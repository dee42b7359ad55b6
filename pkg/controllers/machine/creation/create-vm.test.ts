import { describe, expect, test } from '@jest/globals';

import { MINUTE, SECOND } from '../../../../test/durations.ts';
import { machineClass } from '../../../../test/builders.ts';
import { DriverError } from '../../../driver/error.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { explain } from '../explain/explain.ts';
import { newMachine, runUntilStill } from '../../../../test/fakes/created-machine.ts';

const FINALIZER = 'machine.sapcloud.io/machine-controller-manager';

describe('a provider that takes its time', () => {
  const goesOn = (why: string): DriverError => new DriverError('Uninitialized', why);

  test('is asked again when it asks for it', async () => {
    const world = newMachine();
    const hour = new DriverError('Uninitialized', 'comes with the next delivery', { retryAfterMs: 60 * MINUTE });
    world.driver.failures = { create: [hour] };

    expect((await runUntilStill(world)).result).toMatchObject({ kind: 'requeue', afterMs: 20 * MINUTE });
    world.clock.advance(10 * MINUTE);
    await runUntilStill(world);

    expect(world.driver.calls).toEqual(['status', 'create']);
  });

  test('is asked again soon, and told of as no failure: what it waits for, and in the end VMCreated', async () => {
    const world = newMachine();
    world.driver.failures = { create: [goesOn('host is being wiped'), goesOn('host is being wiped')] };

    const first = await runUntilStill(world);

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
    await runUntilStill(world);
    expect(world.writes).toBe(2);
    world.clock.advance(5 * SECOND);
    world.driver.failures = {};
    const made = await runUntilStill(world);
    expect(made.machine.status?.currentStatus?.phase).toBe('Pending');
    expect(world.events.map(({ reason }) => reason)).toEqual(['VMCreated']);
    expect(world.warnings).toEqual([]);
  });

  test('is told of at the creation timeout, with what it waited for', async () => {
    const world = newMachine();
    world.driver.failures['create'] = Array.from({ length: 300 }, () => goesOn('host is being wiped'));
    await runUntilStill(world);
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
    const world = newMachine();
    world.driver.failures['create'] = [exhausted()];

    const failed = await runUntilStill(world);

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
    await runUntilStill(world);
    expect(world.driver.calls).toEqual(['status', 'create']);
    world.clock.advance(SECOND);
    const retried = await runUntilStill(world);
    expect(world.driver.calls).toEqual(['status', 'create', 'status', 'create']);
    expect(retried.machine.status?.currentStatus?.phase).toBe('Pending');
    expect(retried.machine.status?.lastOperation).not.toHaveProperty('errorCode');
  });

  test('is not asked again by events, however many', async () => {
    const world = newMachine();
    world.driver.failures['create'] = [exhausted()];
    await runUntilStill(world);
    for (let i = 0; i < 1_000; i++) await world.reconcile();

    expect(world.driver.calls).toEqual(['status', 'create']);
    expect(world.writes).toBe(2);
    expect([...world.warnings.map(({ message }) => message), ...world.infos]).toEqual(['driver call failed, retrying']);
    expect(world.events.map(({ reason }) => reason)).toEqual(['CreateFailed']);
  });

  test('is asked again at once when the input has changed', async () => {
    const world = newMachine();
    world.driver.failures['create'] = [new DriverError('InvalidArgument', 'no such image')];
    await runUntilStill(world);
    world.classes.put(
      machineClass((c) => {
        c.metadata.finalizers = [FINALIZER];
        c.metadata.resourceVersion = '2';
      }),
    );

    const { machine: seen } = await runUntilStill(world);

    expect(seen.status?.currentStatus?.phase).toBe('Pending');
  });

  test('is not asked by a new process before the recorded wait is over', async () => {
    const world = newMachine();
    world.driver.failures['create'] = [exhausted()];
    await runUntilStill(world);
    world.restart();
    world.clock.advance(10 * SECOND);

    const waiting = await runUntilStill(world);
    expect(waiting.result).toMatchObject({ kind: 'requeue', afterMs: 5 * SECOND });
    expect(world.driver.calls).toHaveLength(2);

    world.clock.advance(5 * SECOND);
    expect((await runUntilStill(world)).machine.status?.currentStatus?.phase).toBe('Pending');
  });

  test('keeps or clears its scratch state as the code says', async () => {
    const world = newMachine((m) => {
      m.status.lastKnownState = 'disk made';
    });
    world.driver.failures['create'] = [
      new DriverError('Unavailable', 'x'),
      new DriverError('Internal', 'x', { lastKnownState: 'nic made' }),
      new DriverError('Internal', 'x'),
    ];

    const states = [];
    for (let i = 0; i < 3; i++) {
      states.push((await runUntilStill(world)).machine.status?.lastKnownState);
      world.clock.advance(MINUTE);
    }

    expect(states).toEqual(['disk made', 'nic made', undefined]);
  });

  test('that did not answer is asked for the VM first, and not for another one within 2 minutes', async () => {
    const world = newMachine();
    world.driver.idempotentCreate = false;
    world.driver.failures['create'] = [new DriverError('Unavailable', 'gone', { unanswered: true })];
    await runUntilStill(world);
    world.clock.advance(10 * SECOND);
    await runUntilStill(world);
    expect(world.driver.calls).toEqual(['status', 'create', 'status']);

    for (let waitedMs = 10 * SECOND; waitedMs < 115 * SECOND; waitedMs += 15 * SECOND) {
      await runUntilStill(world);
      await runUntilStill(world);
      world.clock.advance(15 * SECOND);
    }
    expect(world.driver.calls.filter((call) => call === 'create')).toHaveLength(1);
    expect(world.driver.calls.filter((call) => call === 'status').length).toBeLessThan(10);
    world.clock.advance(15 * SECOND);
    await runUntilStill(world);
    expect(world.driver.calls.filter((call) => call === 'create')).toHaveLength(2);
  });

  test('at the creation timeout leaves the machine Failed, with the code that autoscalers read', async () => {
    const world = newMachine();
    world.driver.failures['create'] = Array.from({ length: 50 }, exhausted);
    await runUntilStill(world);
    world.clock.advance(20 * MINUTE);

    const { machine: seen, events } = await world.reconcile();

    expect(seen.status).toMatchObject({
      currentStatus: { phase: 'Failed' },
      lastOperation: { type: 'Create', state: 'Failed', errorCode: 'ResourceExhausted' },
    });
    expect(events.map(({ reason }) => reason)).toEqual(['CreationTimeout']);
    const calls = world.driver.calls.length;
    world.clock.advance(60 * MINUTE);
    await runUntilStill(world);
    expect(world.driver.calls).toHaveLength(calls);
  });

  test('is not blamed for a closed gate', async () => {
    const world = newMachine();
    world.driver.failures['create'] = [new GateClosedError('outage', 'target', 'cluster target could not be reached')];

    const { machine: seen, result } = await runUntilStill(world);

    expect(result).toMatchObject({ kind: 'requeue', afterMs: 5 * SECOND });
    expect(seen.status).toEqual({});
    world.clock.advance(5 * SECOND);
    expect((await runUntilStill(world)).machine.status?.currentStatus?.phase).toBe('Pending');
  });

  test('is not blamed, nor asked again by events, for a call that we ended ourselves', async () => {
    const world = newMachine();
    world.driver.failures['create'] = [new DriverError('Canceled', 'CreateMachine was aborted', { unanswered: true })];
    for (let i = 0; i < 5; i++) await runUntilStill(world);

    expect(world.machines.get('default/m-1')?.status).toEqual({});
    expect(world.driver.calls).toEqual(['status', 'create']);
  });

  test('is shown although the write that should show it was lost', async () => {
    const world = newMachine();
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
    const world = newMachine();
    await world.reconcile();
    await world.settle();
    world.clock.advance(20 * MINUTE);

    expect((await runUntilStill(world)).machine.status?.currentStatus?.phase).toBe('Pending');
  });

  test('that knows no VM of the id that the Machine was created with names field and remedy', async () => {
    const world = newMachine((m) => void (m.spec.providerID = 'sim:///wrong'));

    const { machine: seen } = await runUntilStill(world);

    expect(seen.status?.lastOperation).toMatchObject({
      errorCode: 'NotFound',
      description: expect.stringMatching(
        /no VM with ID sim:\/\/\/wrong \(spec\.providerID\); correct the field, or remove it/,
      ),
    });
    expect(world.driver.calls).not.toContain('create');
  });

  test('that returns no node name is asked again later', async () => {
    const world = newMachine();
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: '', addresses: [] });

    const { machine: seen, result } = await runUntilStill(world);

    expect(seen.spec.providerID).toBeUndefined();
    expect(seen.status?.lastOperation?.description).toContain('driver returned no node name');
    expect(result).toMatchObject({ kind: 'requeue', afterMs: 5 * SECOND });
  });
});
