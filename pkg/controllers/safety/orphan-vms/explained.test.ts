import { describe, expect, test } from '@jest/globals';

import { machine, machineClass } from '../../../../test/builders.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { ListedMachine } from '../../../driver/driver.ts';
import { MINUTE_MS } from '../../../base/clock/clock.ts';
import { DriverError } from '../../../driver/error.ts';
import { noteOfForcedRemoval } from '../../vms/forced-removals.ts';
import { FAILURE, GRACE_MS, OrphanWorld, Provider, release, VM, vms } from '../../../../test/fakes/orphan-world.ts';

describe('a VM that we deleted and that is listed still', () => {
  const gone = (world: OrphanWorld, count: number): void => {
    for (const { machineName: name, providerID } of vms(count)) world.gone.add({ name, nodeName: name, providerID });
  };

  test('counts for no set: it would freeze it', async () => {
    const world = new OrphanWorld();
    gone(world, 3);
    world.provider.listed = vms(4);
    await world.look();

    expect(world.ownerless.list().map(({ providerID }) => providerID)).toEqual(['sim:///3']);
  });

  test('is deleted once more, however many there are, and holds up no other', async () => {
    const world = new OrphanWorld();
    gone(world, 4);
    world.provider.listed = vms(5);

    expect(await world.looksUntilDeleted()).toBe(2);
    expect([world.provider.deleted.length, await world.held()]).toEqual([5, 0]);
  });

  test('although its driver has not found it for long was not deleted, which is told at each look, and it counts again', async () => {
    const world = new OrphanWorld();
    world.provider.failure = new DriverError('NotFound', 'no such VM');
    expect(await world.looksUntilDeleted()).toBe(2);
    const counted = [];
    for (let looks = 0; looks < 5; looks++) {
      world.clock.advance(GRACE_MS);
      await world.look();
      counted.push(world.ownerless.list().length);
    }
    await world.pass();

    expect(counted).toEqual([0, 0, 0, 1, 1]);
    expect(world.events).toEqual(['OrphanVMDeleted', ...Array.from({ length: 3 }, () => 'OrphanVMDeletionFailed')]);
    expect(world.messages[1]).toMatch(/ListMachines returns it, but DeleteMachine does not find it: .*no such VM/u);
  });

  test('although its driver has reported for ten minutes that it was deleted was not, and counts again from then on', async () => {
    const world = new OrphanWorld();
    expect(await world.looksUntilDeleted()).toBe(2);
    const counted = [];
    for (let minutes = 0; minutes < 25; minutes++) {
      world.clock.advance(MINUTE_MS);
      await world.look();
      counted.push(world.ownerless.list().length);
    }
    await world.pass();

    expect(counted).toEqual([...Array.from({ length: 10 }, () => 0), ...Array.from({ length: 15 }, () => 1)]);
    expect(world.events).toEqual(['OrphanVMDeleted', 'OrphanVMDeletionFailed', 'OrphanVMDeletionFailed']);
    expect(world.messages[1]).toMatch(
      /ListMachines returns it, although DeleteMachine returned success 10 minutes ago/u,
    );
  });

  test.each([
    { beside: 'nothing else', others: [] },
    { beside: 'a class that cannot be listed', others: ['class-2'] },
  ])('is another one beside $beside when it comes again with the ID of one that is listed no more', async (row) => {
    const world = new OrphanWorld();
    for (const name of row.others) {
      world.classes.push(machineClass((c) => void (c.metadata.name = name)));
      world.otherProviders.set(name, Object.assign(new Provider(), { listed: FAILURE }));
    }
    world.provider.failure = new DriverError('NotFound', 'no such VM');
    for (const listed of Array.from({ length: 4 }, () => [[VM], [VM], []]).flat()) {
      world.provider.listed = listed;
      await world.look();
      world.clock.advance(GRACE_MS);
    }

    expect(world.events).toEqual(Array.from({ length: 4 }, () => 'OrphanVMDeleted'));
  });

  test('counts for none while its Machine vanishes before the call has ended', async () => {
    const world = new OrphanWorld();
    world.removed.deletingVM(machine().metadata.uid);
    expect(world.removed.record(machine())).toBe('deleting');
    await world.look();

    expect(world.ownerless.list()).toEqual([]);
  });
});

describe('the VM of a Machine that a restore of the control cluster has forgotten', () => {
  const another: ListedMachine = { providerID: 'sim:///other', machineName: 'other', machineUID: undefined };
  const known = machine((o) => void (o.spec.providerID = VM.providerID));

  test('is held although it is the only one, counted and told of, until somebody says that it is to go', async () => {
    const world = new OrphanWorld();
    world.forgotten.add([known]);

    expect(await world.looksUntilDeleted()).toBe(Infinity);
    expect(world.events).toEqual(['MachinesForgotten', ...Array.from({ length: 8 }, () => 'OrphanVMsHeld')]);
    expect(world.messages.at(-1)).toMatch(/restored to an earlier state; they are kept.* annotate --overwrite /);
    expect(await world.held()).toBe(1);

    release(world, world.clock.now() + 2 * GRACE_MS);
    expect(await world.looksUntilDeleted()).toBe(1);
    expect(await world.held()).toBe(0);
  });

  test('holds up no other VM of its class', async () => {
    const world = new OrphanWorld();
    world.forgotten.add([known]);
    world.provider.listed = [VM, another];

    expect(await world.looksUntilDeleted()).toBe(2);

    expect(world.provider.deleted.map(({ spec }) => spec?.providerID)).toEqual([another.providerID]);
    expect(await world.held()).toBe(1);
  });

  test('is as any other once its Machine was made again', async () => {
    const world = new OrphanWorld();
    world.forgotten.add([known]);
    world.machines = [known];
    await world.look();

    world.machines = [];

    expect(await world.looksUntilDeleted()).toBe(2);
  });
});

describe('VMs that are explained by a record', () => {
  const lost = (i: number): Machine =>
    machine((m) => {
      Object.assign(m.metadata, { name: `lost-${i}`, uid: `uid-${i}`, deletionTimestamp: '2026-01-01T00:00:00Z' });
      m.spec.providerID = '';
      m.status.currentStatus.phase = 'Terminating';
    });
  /** Machines whose deletion has ended before their creation did; this process saw both. */
  const deleted = ({ removed }: OrphanWorld, count: number): void => {
    for (let i = 0; i < count; i++) {
      removed.creatingVM(`uid-${i}`);
      removed.deletingVM(`uid-${i}`);
      removed.deletedVM(`uid-${i}`);
      expect(removed.record(lost(i))).toBe('in-order');
    }
  };
  const tagged = (count: number): ListedMachine[] => vms(count).map((vm, i) => ({ ...vm, machineUID: `uid-${i}` }));

  test.each([
    { what: 'by UID', listed: tagged(10) },
    { what: 'by name where none is tagged', listed: vms(10) },
  ])('are deleted however many, each by its own proof: $what', async ({ listed }) => {
    const world = new OrphanWorld();
    deleted(world, 10);
    world.provider.listed = listed;

    expect(await world.looksUntilDeleted()).toBe(2);

    expect(world.provider.deleted).toHaveLength(10);
    expect([world.events.includes('OrphanVMsHeld'), await world.held()]).toEqual([false, 0]);
  });

  test('go although too many others are held, and do not hold up few', async () => {
    const world = new OrphanWorld();
    deleted(world, 5);
    world.provider.listed = vms(9);
    expect(await world.looksUntilDeleted()).toBe(2);
    expect([world.provider.deleted.length, await world.held()]).toEqual([5, 4]);

    const few = new OrphanWorld();
    deleted(few, 5);
    few.provider.listed = vms(8);
    await few.looksUntilDeleted();
    expect([few.provider.deleted.length, await few.held()]).toEqual([8, 0]);
  });

  test.each<{ what: string; change: (world: OrphanWorld) => void; listed?: readonly ListedMachine[] }>([
    { what: 'that the cluster was set back', change: ({ removed }) => removed.forgetFinished() },
    {
      what: 'that later Machines of their names were taken away',
      change: ({ removed }) => void Array.from({ length: 4 }, (_, i) => removed.record(again(i))),
    },
    { what: 'that a restore forgot the Machines', change: ({ forgotten }) => forgotten.add([0, 1, 2, 3].map(lost)) },
    {
      what: 'that they carry the UIDs of others',
      change: () => undefined,
      listed: vms(4).map((vm) => ({ ...vm, machineUID: `of another ${vm.machineName}` })),
    },
  ])('are held all the same when it may be wrong: $what', async ({ change, listed = vms(4) }) => {
    const world = new OrphanWorld();
    deleted(world, 4);
    change(world);
    world.provider.listed = listed;

    expect(await world.looksUntilDeleted()).toBe(Infinity);
    expect(await world.held()).toBe(4);
  });

  test('do not lose their hold to too many others when a restore forgot their Machines', async () => {
    const world = new OrphanWorld();
    deleted(world, 1);
    world.forgotten.add([lost(0)]);
    world.provider.listed = vms(5);

    expect(await world.looksUntilDeleted()).toBe(Infinity);
    expect(await world.held()).toBe(5);
  });

  test('also by the notes of forced removals, which name the very VM', async () => {
    const world = new OrphanWorld();
    const notes = [0, 1, 2, 3].map((i) => noteOfForcedRemoval({ ...lost(i), spec: { providerID: `sim:///${i}` } }));
    Object.assign(world.oneClass.metadata, { annotations: Object.assign({}, ...notes) });
    // Something of the machines cannot be deleted by name, such as a port.
    world.namesakes = ['u-new'];
    world.provider.listed = vms(4);

    expect(await world.looksUntilDeleted()).toBe(2);
    expect(world.provider.deleted).toHaveLength(4);
  });

  function again(i: number): Machine {
    const later = structuredClone(lost(i)) as Machine & { metadata: { uid: string; deletionTimestamp?: string } };
    later.metadata.uid = `later-${i}`;
    delete later.metadata.deletionTimestamp;
    return later;
  }
});
