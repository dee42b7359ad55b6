import { describe, expect, test } from '@jest/globals';

import { SECOND } from '../../../../test/durations.ts';
import { machine, machineClass, type BuiltMachine } from '../../../../test/builders.ts';
import type { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { newMachineWorld } from '../../../../test/fakes/new-machine-world.ts';
import type { LastOperation } from '../../../apis/machine/v1alpha1/machine.ts';
import { DriverError } from '../../../driver/error.ts';
import type { MachineStep } from '../context.ts';

const SENT_AT = 'machine.sapcloud.io/creation-sent-at';
const KEY = 'default/m-1';

/** A new machine at a driver that may make a second VM when it is asked twice. */
function start(): FakeWorld {
  const world = newMachineWorld();
  world.driver.idempotentCreate = false;
  return world;
}

async function run(world: FakeWorld, steps: readonly MachineStep[] = world.upkeep): Promise<void> {
  for (let i = 0; i < 6 && world.machines.get(KEY) !== undefined; i++) {
    await world.pass(steps);
    await world.settle();
  }
}

/** Runs until that call has been sent, and kills the process before any answer comes. */
async function killDuring(world: FakeWorld): Promise<void> {
  const create = world.driver.create.bind(world.driver);
  world.driver.create = () => {
    world.driver.calls.push('create');
    return new Promise(() => undefined);
  };
  await run(world);
  expect(world.driver.calls).toEqual(['status', 'create']);
  world.driver.create = create;
  world.restart();
}

const creations = (world: FakeWorld): number => world.driver.calls.filter((call) => call === 'create').length;

/** Passes for two minutes make no second call, and those of the minute after that make one. */
async function expectRepeatedAfterTwoMinutes(world: FakeWorld, eachPass = async (): Promise<void> => undefined) {
  for (let i = 0; i < 8; i++) {
    await run(world);
    await eachPass();
    world.clock.advance(14 * SECOND);
  }
  expect(creations(world)).toBe(1);
  for (let i = 0; i < 3; i++) {
    await run(world);
    world.clock.advance(15 * SECOND);
  }

  expect(creations(world)).toBe(2);
}
const annotations = (world: FakeWorld): Record<string, string> => world.machines.get(KEY)?.metadata.annotations ?? {};

describe('a CreateMachine without answer, at a driver that may make a second VM', () => {
  test('is recorded before it is sent, and no more once the VM is', async () => {
    const world = start();
    const create = world.driver.create.bind(world.driver);
    let recorded: string | undefined;
    world.driver.create = (request) => {
      recorded = annotations(world)[SENT_AT];
      return create(request);
    };

    await run(world);

    expect(recorded).toBe('2026-01-01T00:00:00Z');
    expect(world.machines.get(KEY)?.status?.currentStatus?.phase).toBe('Pending');
    expect(annotations(world)).not.toHaveProperty([SENT_AT]);
  });

  test('is not repeated before 2 minutes when the process is killed, and taken over when its VM shows', async () => {
    const world = start();
    await killDuring(world);

    for (let i = 0; i < 7; i++) {
      await run(world);
      world.clock.advance(15 * SECOND);
    }
    expect(creations(world)).toBe(1);
    world.driver.vms.set('m-1', { providerID: 'sim:///late', nodeName: 'm-1', addresses: [] });
    await run(world);

    expect(creations(world)).toBe(1);
    expect(world.machines.get(KEY)?.spec.providerID).toBe('sim:///late');
    expect(annotations(world)).not.toHaveProperty([SENT_AT]);
  });

  test('is repeated after 2 minutes when no VM has shown', async () => {
    const world = start();
    await killDuring(world);

    for (let i = 0; i < 9; i++) {
      await run(world);
      world.clock.advance(15 * SECOND);
    }
    await run(world);

    expect(creations(world)).toBe(2);
    expect(world.machines.get(KEY)?.status?.currentStatus?.phase).toBe('Pending');
  });

  test('is not repeated before 2 minutes either when the call was given up, and comes back by itself', async () => {
    const world = start();
    world.driver.failures['create'] = [new DriverError('DeadlineExceeded', 'no answer', { unanswered: true })];

    await expectRepeatedAfterTwoMinutes(world, async () => {
      expect((await world.reconcile()).result).toMatchObject({ kind: 'requeue' });
    });
  });

  test('looks again after 15 seconds', async () => {
    const world = start();
    await killDuring(world);
    await world.reconcile();
    await world.settle();

    expect((await world.reconcile()).result).toMatchObject({ kind: 'requeue', afterMs: 15 * SECOND });
  });

  test('counts from the deadline of the call when the process was away for longer', async () => {
    const world = start();
    await killDuring(world);
    Object.assign(world.settings, { creationTimeoutMs: 60_000 * SECOND });
    world.clock.advance(60_121 * SECOND);
    world.machines.put({ ...(world.machines.get(KEY) as BuiltMachine), status: {} });
    world.graceLeftMs = 1;

    await run(world);

    expect(creations(world)).toBe(2);
  });

  test('may run on after its process has died: two minutes count from when the next one is there, if its deadline is not over', async () => {
    const world = start();
    await killDuring(world);
    world.clock.advance(300 * SECOND);

    for (let i = 0; i < 8; i++) {
      await run(world);
      world.clock.advance(14 * SECOND);
    }
    expect(creations(world)).toBe(1);
    world.clock.advance(15 * SECOND);
    await run(world);

    expect(creations(world)).toBe(2);
  });

  test('is not over with the answer to another call that fails meanwhile', async () => {
    const world = start();
    world.driver.failures['create'] = [new DriverError('DeadlineExceeded', 'no answer', { unanswered: true })];
    await run(world);
    world.driver.failures['status'] = [new DriverError('Unavailable', 'come again')];

    for (let i = 0; i < 7; i++) {
      world.clock.advance(15 * SECOND);
      await run(world);
    }

    expect(world.driver.calls.filter((call) => call === 'status').length).toBeGreaterThan(2);
    expect(creations(world)).toBe(1);
  });

  test.each(['ResourceExhausted', 'InvalidArgument', 'PermissionDenied', 'NotFound', 'FailedPrecondition'] as const)(
    'is over when the request is refused: it is repeated as code %s says, also after a kill',
    async (code) => {
      const world = start();
      world.driver.failures['create'] = [new DriverError(code, 'no')];
      await run(world);
      expect(annotations(world)).not.toHaveProperty([SENT_AT]);
      world.restart();
      world.clock.advance(15 * SECOND);

      await run(world);

      expect(creations(world)).toBe(2);
    },
  );

  test.each([
    'DeadlineExceeded',
    'Aborted',
    'Unknown',
    'Canceled',
    'Internal',
    'Unavailable',
    'Uninitialized',
  ] as const)(
    'is not repeated before 2 minutes either when the driver answers %s, after which a VM may show as well',
    async (code) => {
      const world = start();
      world.driver.failures['create'] = [new DriverError(code, 'the provider did not say')];

      await expectRepeatedAfterTwoMinutes(world);
    },
  );

  test.each([
    {
      what: 'says so once the class is corrected, in place of the failure',
      isCorrected: true,
      shown: {
        state: 'Processing',
        errorCode: 'VMBeingCreated',
        description: 'did not report whether it created a VM. Unless one appears, it is repeated',
      },
    },
    {
      what: 'keeps its failure while nothing is corrected',
      isCorrected: false,
      shown: { state: 'Failed', errorCode: 'Internal', description: 'the image does not exist' },
    },
  ])('$what', async ({ isCorrected, shown }) => {
    const world = start();
    world.driver.failures['create'] = [new DriverError('Internal', 'the image does not exist')];
    await run(world);
    const operation = (): LastOperation | undefined => world.machines.get(KEY)?.status?.lastOperation;
    expect(operation()).toMatchObject({ state: 'Failed', description: expect.stringContaining('the image') });

    if (isCorrected) {
      const { finalizers } = world.classes.get('default/class-1')?.metadata ?? {};
      world.classes.put(
        machineClass((c) => Object.assign(c.metadata, { finalizers, generation: 7, resourceVersion: '77' })),
      );
    }
    for (let i = 0; i < 7; i++) {
      await run(world);
      world.clock.advance(15 * SECOND);
      expect(operation()).toMatchObject({ ...shown, description: expect.stringContaining(shown.description) });
    }
    expect(creations(world)).toBe(1);
    world.clock.advance(30 * SECOND);
    await run(world);

    expect(creations(world)).toBe(2);
  });

  test('is over when a VM is told of without a name for its Node, and not repeated before 2 minutes', async () => {
    const world = start();
    const create = world.driver.create.bind(world.driver);
    world.driver.create = async (request) => {
      const vm = await create(request);
      world.driver.vms.clear();
      return creations(world) === 1 ? { ...vm, nodeName: '' } : vm;
    };

    await expectRepeatedAfterTwoMinutes(world);
  });

  test('opens no class that its provider has nothing for, while its VM is looked for', async () => {
    const world = start();
    world.driver.failures['create'] = [
      new DriverError('DeadlineExceeded', 'no answer'),
      new DriverError('ResourceExhausted', 'no quota'),
    ];
    await run(world);
    const other = machine((m) => {
      Object.assign(m.metadata, { name: 'm-2', uid: 'uid-m-2', labels: {} });
      m.spec = { class: { kind: 'MachineClass', name: 'class-1' } };
      m.status = {} as (typeof m)['status'];
    });
    world.machines.put(other);
    for (let i = 0; i < 4; i++) {
      await world.reconcile('default/m-2');
      await world.settle();
    }
    const { uid } = world.classes.get('default/class-1')?.metadata ?? {};
    expect(world.steps.retries.isExhausted(uid ?? '')).toBe(true);

    world.clock.advance(15 * SECOND);
    await run(world);
    expect(world.driver.calls.at(-1)).toBe('status');

    expect(world.steps.retries.isExhausted(uid ?? '')).toBe(true);
  });

  test('keeps a deleted machine until its VM cannot show any more, also after a kill', async () => {
    const world = start();
    await killDuring(world);
    const current = world.machines.get(KEY) as BuiltMachine;
    const deletionTimestamp = '2026-01-01T00:00:00Z';
    world.machines.put({ ...current, metadata: { ...current.metadata, deletionTimestamp, resourceVersion: '900' } });
    world.driver.failures['delete'] = Array.from({ length: 4 }, () => new DriverError('NotFound', 'no VM'));

    for (let i = 0; i < 6; i++) {
      await run(world, world.deletion);
      world.clock.advance(15 * SECOND);
    }
    expect(world.machines.get(KEY)).toBeDefined();
    world.driver.vms.set('m-1', { providerID: 'sim:///late', nodeName: 'm-1', addresses: [] });
    for (let i = 0; i < 6; i++) {
      await run(world, world.deletion);
      world.clock.advance(15 * SECOND);
    }

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.driver.vms.size).toBe(0);
  });
});

describe('a driver that promises to find what it began', () => {
  test('costs no annotation, and is asked again at once after a kill', async () => {
    const world = start();
    world.driver.idempotentCreate = true;
    await killDuring(world);
    expect(annotations(world)).not.toHaveProperty([SENT_AT]);

    await run(world);

    expect(creations(world)).toBe(2);
  });
});
