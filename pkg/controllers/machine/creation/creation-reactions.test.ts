import { describe, expect, test } from '@jest/globals';

import { node } from '../../../../test/builders.ts';
import { SECOND } from '../../../../test/durations.ts';
import type { FakeWorld, PassSeen } from '../../../../test/fakes/machine-world.ts';
import { newMachineWorld } from '../../../../test/fakes/new-machine-world.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { DRIVER_CODES, DriverError, type DriverCode } from '../../../driver/error.ts';

const STATE = 'disk made';

type Call = 'status' | 'create' | 'initialize';

/** How a failure shows: after how many seconds the call is repeated at the latest, and whether the driver's state is kept. */
interface Repeated {
  readonly atMost: number;
  readonly keepsState: boolean;
}

/** What follows from a code: the failure is shown and the call repeated, it is waited for, or creation goes on with another call. */
type Reaction = Repeated | 'awaited' | 'create' | 'initialize' | 'done';

const soon: Repeated = { atMost: 5, keepsState: true };
const later: Repeated = { atMost: 180, keepsState: false };
const exhausted: Repeated = { atMost: 600, keepsState: true };

/** Every code, with the reaction of each call of a creation: the table that operators and the original go by. */
const TABLE: Readonly<Record<Exclude<DriverCode, 'OK'>, Readonly<Record<Call, Reaction>>>> = {
  Canceled: { status: later, create: later, initialize: soon },
  Unknown: { status: soon, create: soon, initialize: soon },
  InvalidArgument: { status: later, create: later, initialize: soon },
  DeadlineExceeded: { status: soon, create: soon, initialize: soon },
  NotFound: { status: 'create', create: later, initialize: soon },
  AlreadyExists: { status: later, create: later, initialize: soon },
  PermissionDenied: { status: later, create: later, initialize: soon },
  ResourceExhausted: { status: exhausted, create: exhausted, initialize: soon },
  FailedPrecondition: { status: later, create: later, initialize: soon },
  Aborted: { status: soon, create: soon, initialize: soon },
  OutOfRange: { status: later, create: later, initialize: soon },
  Unimplemented: { status: 'create', create: later, initialize: 'done' },
  Internal: { status: later, create: later, initialize: soon },
  Unavailable: { status: soon, create: soon, initialize: soon },
  DataLoss: { status: later, create: later, initialize: soon },
  Unauthenticated: { status: later, create: later, initialize: soon },
  Uninitialized: { status: 'initialize', create: 'awaited', initialize: 'awaited' },
};

const ROWS = Object.entries(TABLE).flatMap(([code, reactions]) =>
  Object.entries(reactions).map(([call, reaction]) => ({ code: code as DriverCode, call: call as Call, reaction })),
);

function start(): FakeWorld {
  const world = newMachineWorld({ machine: (m) => Object.assign(m.status, { lastKnownState: STATE }) });
  world.driver.methods.add('InitializeMachine');
  Object.assign(world.settings, { creationTimeoutMs: Number.MAX_SAFE_INTEGER });
  return world;
}

/** Passes until nothing moves any more without an event. */
async function run(world: FakeWorld): Promise<PassSeen> {
  let seen = await world.reconcile();
  for (let i = 0; i < 20; i++) {
    const before = world.driver.calls.length;
    await world.settle();
    seen = await world.reconcile();
    await world.settle();
    if (world.driver.calls.length === before && seen.writes.length === 0) break;
  }
  return seen;
}

function failing(world: FakeWorld, call: Call, code: DriverCode, times: number): void {
  if (call !== 'create') world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] });
  if (call === 'initialize') {
    const result = { providerID: 'sim:///m-1', nodeName: 'm-1' };
    world.driver.failures['status'] = [new DriverError('Uninitialized', 'not finished', { result })];
  }
  const result = { providerID: 'sim:///m-1', nodeName: 'm-1' };
  world.driver.failures[call] = Array.from({ length: times }, () => new DriverError(code, 'words', { result }));
}

function callsOf(world: FakeWorld, call: Call): number {
  return world.driver.calls.filter((one) => one === call).length;
}

function waitOf({ result }: PassSeen): number {
  return result.kind === 'requeue' ? result.afterMs : Number.NaN;
}

describe('a creation', () => {
  test('knows a reaction to every code', () => {
    expect(['OK', ...Object.keys(TABLE)]).toEqual([...DRIVER_CODES]);
  });

  test.each(ROWS.filter(({ reaction }) => reaction === 'awaited'))(
    'goes on at the provider after $code of $call, which is asked again every few seconds and is no failure',
    async ({ code, call }) => {
      const world = start();
      failing(world, call, code, 12);

      let last = await run(world);
      for (let i = 0; i < 9; i++) {
        expect(waitOf(last)).toBe(5 * SECOND);
        world.clock.advance(waitOf(last));
        last = await run(world);
      }

      const description = `The VM is being ${call === 'create' ? 'created' : 'initialized'}: words`;
      expect(last.machine.status).toMatchObject({
        lastKnownState: STATE,
        lastOperation: {
          type: 'Create',
          state: 'Processing',
          errorCode: call === 'create' ? 'VMBeingCreated' : 'VMBeingInitialized',
          description,
        },
      });
      expect(last.machine.status?.currentStatus?.phase ?? '').toBe('');
      expect(callsOf(world, call)).toBe(10);
      expect([world.events, world.warnings]).toEqual([[], []]);
    },
  );

  test.each(ROWS.filter(({ reaction }) => typeof reaction === 'object'))(
    'shows $code of $call, and repeats the call, with increasing delays',
    async ({ code, call, reaction }) => {
      const { atMost, keepsState } = reaction as Repeated;
      const world = start();
      failing(world, call, code, 12);

      const first = await run(world);

      const text = `machine codes error: code = [${code}] message = [words]`;
      expect(first.machine.status).toMatchObject({
        currentStatus: { phase: 'CrashLoopBackOff' },
        lastOperation: {
          type: 'Create',
          state: 'Failed',
          errorCode: code,
          description:
            call === 'initialize'
              ? `Provider error: ${text}. Initialize VM Instance`
              : `Cloud provider message - ${text}`,
        },
      });
      expect(first.machine.status?.lastKnownState).toBe(keepsState ? STATE : undefined);
      expect(waitOf(first)).toBe(code === 'ResourceExhausted' && call !== 'initialize' ? 15 * SECOND : 5 * SECOND);
      expect(callsOf(world, call)).toBe(1);

      let last = first;
      for (let i = 0; i < 9; i++) {
        world.clock.advance(waitOf(last));
        last = await run(world);
      }
      expect(callsOf(world, call)).toBe(10);
      expect(waitOf(last)).toBe(atMost * SECOND);
    },
  );

  test.each([
    ...ROWS.filter(({ reaction }) => reaction === 'create').map((row) => ({ ...row, before: ['status', 'create'] })),
    ...ROWS.filter(({ reaction }) => reaction === 'initialize').map((row) => ({ ...row, before: ['status'] })),
    ...ROWS.filter(({ reaction }) => reaction === 'done').map((row) => ({ ...row, before: ['status'] })),
  ])('takes $code of $call for no failure', async ({ code, call, before }) => {
    const world = start();
    failing(world, call, code, 1);

    const { machine: seen } = await run(world);

    expect(seen.status).toMatchObject({ currentStatus: { phase: 'Pending' } });
    expect(world.driver.calls).toEqual([...before, 'initialize']);
  });

  test.each(
    (['NotFound', 'Unimplemented'] as const).flatMap((code) => [
      { code, where: 'its Node is older than the Machine', madeAt: '2025-01-01T00:00:00Z', phase: 'Pending' },
      { code, where: 'its Node was made since', madeAt: '2026-01-01T00:00:05Z', phase: 'Pending' },
      { code, where: 'there is no target cluster', madeAt: undefined, phase: 'Available' },
    ]),
  )(
    'trusts the VM that is recorded when GetMachineStatus says $code, its status is lost, and $where',
    async ({ code, madeAt, phase }) => {
      const world = start();
      world.hasTarget = madeAt !== undefined;
      if (madeAt !== undefined)
        world.nodes.cache.put(
          node((n) => {
            n.metadata.creationTimestamp = madeAt;
            n.status.conditions = [{ type: 'Ready', status: 'False' }];
          }),
        );
      const recorded = world.machines.get('default/m-1') as Machine;
      const labels = { node: 'm-1' };
      world.machines.put({
        ...recorded,
        metadata: { ...recorded.metadata, labels, resourceVersion: '2' },
        spec: { ...recorded.spec, providerID: 'sim:///m-1' },
      });
      world.driver.failures['status'] = [new DriverError(code, 'words')];

      const { machine: seen } = await run(world);

      expect(seen.status).toMatchObject({ currentStatus: { phase } });
      expect(world.driver.calls).toEqual(['status']);
    },
  );

  test.each([
    { idempotentCreate: true, calls: ['status', 'create'], phase: 'Pending' },
    { idempotentCreate: false, calls: ['status'], phase: 'CrashLoopBackOff' },
  ])(
    'goes on with what was begun and has no VM yet, if CreateMachine may be repeated: $idempotentCreate',
    async ({ idempotentCreate, calls, phase }) => {
      const world = start();
      world.driver.methods.delete('InitializeMachine');
      world.driver.idempotentCreate = idempotentCreate;
      world.driver.failures['status'] = [new DriverError('Uninitialized', 'words')];

      const { machine: seen } = await run(world);

      expect(world.driver.calls).toEqual(calls);
      expect(seen.status).toMatchObject({ currentStatus: { phase } });
    },
  );

  test('keeps the state that comes with a failure, whatever the code', async () => {
    const world = start();
    world.driver.failures['create'] = [new DriverError('Internal', 'words', { lastKnownState: 'nic made' })];

    expect((await run(world)).machine.status?.lastKnownState).toBe('nic made');
  });
});
