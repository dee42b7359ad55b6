import { describe, expect, test } from '@jest/globals';

import { machine, machineClass, type BuiltMachine } from '../../../../test/builders.ts';
import { MINUTE, SECOND } from '../../../../test/durations.ts';
import type { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { newMachineWorld } from '../../../../test/fakes/new-machine-world.ts';
import { MACHINE_FINALIZER, VM_CLASS_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { DriverError } from '../../../driver/error.ts';
import { CLASS_INDEX, classIndex } from '../../../operator/indexes/class-index.ts';

const KEY = 'default/m-1';

/** A new machine of class-1; class-2 is of another account of the provider. */
function start(change: (m: BuiltMachine) => void = () => undefined): FakeWorld {
  const world = newMachineWorld({ userData: 'x', machine: change });
  world.otherDriver.notFound = () => new DriverError('NotFound', 'no VM of that name in this account');
  world.classes.put(
    machineClass((c) => {
      c.metadata.name = 'class-2';
      c.metadata.finalizers = [MACHINE_FINALIZER];
      c.provider = 'sim-2';
    }),
  );
  return world;
}

function current(world: FakeWorld): Machine {
  const found = world.machines.get(KEY);
  if (found === undefined) throw new Error('no machine');
  return found;
}

/** Somebody writes the Machine. */
function edit(world: FakeWorld, change: (m: Machine) => void): void {
  const edited = JSON.parse(JSON.stringify(current(world))) as Machine;
  change(edited);
  edited.metadata.generation = (edited.metadata.generation ?? 0) + 1;
  edited.metadata.resourceVersion = `${Number(edited.metadata.resourceVersion) + 1000}`;
  world.machines.put(edited);
}

const name = (className: string) => (m: Machine) => void (m.spec.class = { kind: 'MachineClass', name: className });
const goes = (m: Machine): void => void (m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z');

/** Lets CreateMachine make its VM, and answer with `error` if there is one, when the returned promise is resolved. */
function holdCreations({ driver }: FakeWorld, error?: DriverError): PromiseWithResolvers<void> {
  const answer = Promise.withResolvers<void>();
  const create = driver.create.bind(driver);
  driver.create = async (request) => {
    await answer.promise;
    const made = await create(request);
    if (error !== undefined) throw error;
    return made;
  };
  return answer;
}

async function passes(world: FakeWorld, steps: 'upkeep' | 'deletion' = 'upkeep'): Promise<void> {
  for (let i = 0; i < 10 && world.machines.get(KEY) !== undefined; i++) {
    await world.pass(world[steps]);
    world.drains.end({ kind: 'drained' });
    await world.settle();
  }
}

describe('a machine with a VM', () => {
  test('is deleted with the class that its VM was requested with, whatever it names by then', async () => {
    const world = start();
    await passes(world);
    expect(current(world).metadata.annotations).toMatchObject({ [VM_CLASS_ANNOTATION]: 'class-1' });

    world.restart();
    edit(world, name('class-2'));
    await passes(world);
    edit(world, goes);
    await passes(world, 'deletion');

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.driver.vms.size).toBe(0);
    expect(world.driver.calls).toContain('delete');
    expect(world.otherDriver.calls).toEqual([]);
  });

  test('says by condition and Event, once, that another class is not followed, until that is taken back', async () => {
    const world = start();
    await passes(world);
    edit(world, name('class-2'));
    await passes(world);

    const told = world.events.filter(({ reason }) => reason === 'ClassChangeIgnored');
    expect(told).toHaveLength(1);
    expect(told[0]?.message).toMatch(
      /spec.class.name is "class-2", but the VM was requested with MachineClass class-1/,
    );
    expect(current(world).status?.machineConditions).toContainEqual(
      expect.objectContaining({ type: 'ClassChangeIgnored', status: 'True', message: told[0]?.message }),
    );

    // Definitions that store no such condition.
    edit(world, (m) => void delete m.status?.machineConditions);
    const { writes } = await world.reconcile();
    expect(writes).toEqual([]);

    edit(world, name('class-1'));
    await passes(world);
    expect(current(world).status?.machineConditions ?? []).not.toContainEqual(
      expect.objectContaining({ type: 'ClassChangeIgnored' }),
    );
    expect(world.events.filter(({ reason }) => reason === 'ClassChangeIgnored')).toHaveLength(1);
  });

  test('that the original has made keeps the class that it was first seen with', async () => {
    const world = start((m) => {
      m.spec.providerID = 'sim:///m-1';
      m.metadata.labels['node'] = 'm-1';
      m.status.currentStatus = { phase: 'Running', lastUpdateTime: '2026-01-01T00:00:00Z' };
    });
    await passes(world);
    expect(current(world).metadata.annotations).not.toHaveProperty([VM_CLASS_ANNOTATION]);

    edit(world, name('class-2'));
    await passes(world);

    expect(current(world).metadata.annotations).toMatchObject({ [VM_CLASS_ANNOTATION]: 'class-1' });
    expect(world.events.map(({ reason }) => reason)).toContain('ClassChangeIgnored');
  });
});

describe('a machine whose class changes during its creation', () => {
  test('needs its former class, too, while CreateMachine runs, and gets no second VM', async () => {
    const world = start();
    const answer = holdCreations(world);
    await passes(world);
    expect(classIndex(current(world))).toEqual(['default/class-1']);
    expect(world.writes).toBe(0);

    edit(world, name('class-2'));
    await passes(world);
    expect(classIndex(current(world))).toEqual(['default/class-1', 'default/class-2']);
    expect((await world.reconcile()).writes).toEqual([]);

    answer.resolve();
    await passes(world);
    expect(current(world)).toMatchObject({
      metadata: { annotations: { [VM_CLASS_ANNOTATION]: 'class-1' } },
      spec: { providerID: 'sim:///m-1', class: { name: 'class-2' } },
    });
    expect(world.driver.calls).toEqual(['status', 'create']);
    expect(world.otherDriver.calls).toEqual([]);
  });

  test.each([
    { what: 'succeeds', error: undefined },
    { what: 'succeeds before it is back', error: undefined, isLate: true },
    { what: 'has no answer', error: new DriverError('Unavailable', 'connection lost', { unanswered: true }) },
  ])('keeps its former class if it is not shown for a while during a CreateMachine call that $what', async (row) => {
    const { error, isLate = false } = row;
    const world = start();
    const answer = holdCreations(world, error);
    await passes(world);

    world.controller.forget(current(world));
    world.activities.forgetAll(KEY);
    if (isLate) answer.resolve();
    await world.settle();
    edit(world, name('class-2'));
    await passes(world);
    answer.resolve();
    await passes(world);
    world.clock.advance(10 * MINUTE);
    await passes(world);

    expect(current(world)).toMatchObject({
      metadata: { annotations: { [VM_CLASS_ANNOTATION]: 'class-1' } },
      spec: { providerID: 'sim:///m-1' },
    });
    expect(world.otherDriver.calls).toEqual([]);
  });

  test('is deleted with its former class if its CreateMachine call has ended while it was not shown', async () => {
    const world = start();
    const answer = holdCreations(world);
    await passes(world);
    world.controller.forget(current(world));
    world.activities.forgetAll(KEY);
    answer.resolve();
    await world.settle();

    edit(world, name('class-2'));
    edit(world, goes);
    await passes(world, 'deletion');

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.driver.vms.size).toBe(0);
    expect(world.otherDriver.calls).toEqual([]);
  });

  test('asks for no VM of the class that it no longer names when the call gets its turn', async () => {
    const world = start();
    const answer = Promise.withResolvers<void>();
    world.driver.failures = { status: [new DriverError('NotFound', 'none')] };
    world.driver.hold = answer.promise;
    await world.reconcile();
    await world.settle();
    expect(world.driver.calls).toEqual(['status']);

    edit(world, name('class-2'));
    await world.reconcile();
    answer.resolve();
    await passes(world);

    expect(world.driver.calls).toEqual(['status']);
    expect(current(world)).toMatchObject({ metadata: { annotations: { [VM_CLASS_ANNOTATION]: 'class-2' } } });
  });

  test.each([
    { what: 'by the same process', restarts: false },
    { what: 'by the next process', restarts: true },
  ])('gets no second VM when an answer is missing, $what', async ({ restarts }) => {
    const world = start();
    world.driver.failures = { create: [new DriverError('Unavailable', 'connection lost', { unanswered: true })] };
    await passes(world);
    expect(current(world).metadata.annotations).toMatchObject({ [VM_CLASS_ANNOTATION]: 'class-1' });
    // The provider shows it late.
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] });

    if (restarts) world.restart();
    edit(world, name('class-2'));
    world.clock.advance(10 * SECOND);
    await passes(world);

    expect(current(world).spec.providerID).toBe('sim:///m-1');
    expect(world.driver.calls.filter((call) => call === 'create')).toHaveLength(1);
    expect(world.otherDriver.calls).toEqual([]);
  });

  test('is made with the new class once the former one has no VM and no answer is missing', async () => {
    const world = start();
    world.driver.failures = { create: [new DriverError('Unavailable', 'connection lost', { unanswered: true })] };
    await passes(world);

    edit(world, name('class-2'));
    world.clock.advance(10 * SECOND);
    await passes(world);
    // Its VM may show for two minutes, whatever the driver promises of its own class.
    expect(world.otherDriver.calls).toEqual([]);
    for (let i = 0; i < 10; i++) {
      world.clock.advance(15 * SECOND);
      await passes(world);
    }

    expect(world.driver.calls.filter((call) => call === 'create')).toHaveLength(1);
    expect(world.otherDriver.calls).toEqual(['status', 'create']);
    expect(current(world).metadata.annotations).toMatchObject({ [VM_CLASS_ANNOTATION]: 'class-2' });
    expect(current(world).metadata.annotations).not.toHaveProperty(['machine.sapcloud.io/creation-sent-at']);
  });

  test('is not made with another class while the VM may show of a creation that was answered with that of another machine', async () => {
    const world = start();
    world.machines.put(
      machine((m) => {
        Object.assign(m.metadata, { name: 'm-2', labels: {} });
        Object.assign(m, { spec: { class: m.spec.class }, status: {} });
      }),
    );
    const vm = (i: number) => ({
      providerID: `sim:///m-${i}`,
      nodeName: `ip-${i}`,
      addresses: [],
      lastKnownState: undefined,
    });
    world.driver.idempotentCreate = true;
    world.driver.create = () => Promise.resolve(vm(2));
    world.driver.failures = {
      status: [new DriverError('NotFound', 'none'), new DriverError('Uninitialized', 'x', { result: vm(1) })],
    };
    await passes(world);
    expect(current(world).status?.lastOperation?.description).toContain('from GetMachineStatus');

    edit(world, name('class-2'));
    world.clock.advance(10 * SECOND);
    await passes(world);

    expect(world.otherDriver.calls).toEqual([]);
  });

  test('is not made with another class after a change there and back, while an answer is missing', async () => {
    const world = start();
    const lost = new DriverError('Unavailable', 'connection lost', { unanswered: true });
    world.driver.failures = { create: [new DriverError('ResourceExhausted', 'no host'), lost] };
    await passes(world);
    edit(world, name('class-2'));
    world.otherDriver.failures = { status: [new DriverError('Unavailable', 'busy')] };
    world.clock.advance(MINUTE);
    await passes(world);
    expect(world.otherDriver.calls).toEqual(['status']);

    edit(world, name('class-1'));
    world.clock.advance(MINUTE);
    await passes(world);
    expect(world.driver.calls.filter((call) => call === 'create')).toHaveLength(2);
    edit(world, name('class-2'));
    world.clock.advance(10 * SECOND);
    await passes(world);

    expect(world.otherDriver.calls).toEqual(['status']);
  });

  test('has the new class recorded before its CreateMachine is sent', async () => {
    const world = start();
    world.driver.failures = { create: [new DriverError('ResourceExhausted', 'no host')] };
    await passes(world);
    edit(world, name('class-2'));
    world.otherDriver.hold = new Promise(() => undefined);
    world.otherDriver.failures = {};
    world.clock.advance(MINUTE);
    const recorded: unknown[] = [];
    world.otherDriver.getStatus = () => Promise.reject(new DriverError('NotFound', 'none'));
    world.otherDriver.create = () => {
      recorded.push(current(world).metadata.annotations?.[VM_CLASS_ANNOTATION]);
      return new Promise(() => undefined);
    };
    await passes(world);

    expect(recorded).toEqual(['class-2']);
    expect(world.driver.calls).toEqual(['status', 'create', 'status']);
  });

  test('goes on in the former class with what that has begun', async () => {
    const world = start();
    world.driver.failures = { create: [new DriverError('Uninitialized', 'waits for its port')] };
    await passes(world);
    edit(world, name('class-2'));
    world.driver.failures = { status: [new DriverError('Uninitialized', 'no server yet')] };
    world.clock.advance(MINUTE);
    await passes(world);

    expect(current(world)).toMatchObject({ spec: { providerID: 'sim:///m-1' } });
    expect(world.driver.calls).toEqual(['status', 'create', 'status', 'create']);
    expect(world.otherDriver.calls).toEqual([]);
  });

  test('is not held up by a class that has refused it, nor by one that is gone', async () => {
    const world = start();
    world.driver.failures = { create: [new DriverError('InvalidArgument', 'no such flavor')] };
    await passes(world);
    edit(world, name('class-2'));
    await passes(world);
    expect(world.driver.calls).toEqual(['status', 'create']);
    expect(world.otherDriver.calls).toEqual(['status', 'create']);

    const copied = start((m) => void (m.metadata.annotations[VM_CLASS_ANNOTATION] = 'of-another-cluster'));
    await passes(copied);
    expect(current(copied).metadata.annotations).toMatchObject({ [VM_CLASS_ANNOTATION]: 'class-1' });
  });

  test('is deleted with the class whose answer is missing', async () => {
    const world = start();
    world.driver.failures = { create: [new DriverError('Unavailable', 'connection lost', { unanswered: true })] };
    await world.reconcile();
    await world.settle();
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] });
    edit(world, name('class-2'));
    edit(world, goes);
    await passes(world, 'deletion');

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.driver.vms.size).toBe(0);
    expect(world.otherDriver.calls).toEqual([]);
  });
});

test.each([
  { what: 'the class that it names', annotation: undefined, kind: 'MachineClass', want: ['default/class-1'] },
  {
    what: 'the class of its VM first',
    annotation: 'old',
    kind: 'MachineClass',
    want: ['default/old', 'default/class-1'],
  },
  { what: 'a class of whatever kind', annotation: undefined, kind: 'AWSMachineClass', want: ['default/class-1'] },
  { what: 'one class once', annotation: 'class-1', kind: 'MachineClass', want: ['default/class-1'] },
])(`a machine counts in index ${CLASS_INDEX} for $what`, ({ annotation, kind, want }) => {
  const world = start((m) => {
    m.spec.class = { kind, name: 'class-1' };
    if (annotation !== undefined) m.metadata.annotations[VM_CLASS_ANNOTATION] = annotation;
  });

  expect(classIndex(current(world))).toEqual(want);
});
