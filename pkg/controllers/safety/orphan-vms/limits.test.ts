import { describe, expect, test } from '@jest/globals';

import { machine } from '../../../../test/builders.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { ListedMachine } from '../../../driver/driver.ts';
import { DriverError } from '../../../driver/error.ts';
import { noteOfForcedRemoval } from '../../vms/forced-removals.ts';
import { anotherMachine, FAILURE, GRACE_MS, OrphanWorld, release, vms } from '../../../../test/fakes/orphan-world.ts';

describe('too many VMs without a Machine at once', () => {
  test('are held, told of at each look, and deleted when somebody says so', async () => {
    const world = new OrphanWorld();
    world.provider.listed = vms(4);

    expect(await world.looksUntilDeleted()).toBe(Infinity);
    expect(world.events).toEqual(Array.from({ length: 8 }, () => 'OrphanVMsHeld'));
    expect(await world.held()).toBe(4);

    release(world, world.clock.now() + 2 * GRACE_MS);
    await world.look();
    expect(world.provider.deleted).toHaveLength(4);
    expect(await world.held()).toBe(0);
  });

  test('are held again when the permission has passed', async () => {
    const world = new OrphanWorld();
    release(world, world.clock.now() + GRACE_MS);
    world.provider.listed = vms(4);

    expect(await world.looksUntilDeleted()).toBe(Infinity);
  });

  test('are not held again when they were deleted by permission and are listed for longer than that lasts, nor is another one for them', async () => {
    const world = new OrphanWorld();
    world.provider.listed = vms(4);
    await world.looksUntilDeleted();
    release(world, world.clock.now() + 2 * GRACE_MS);
    for (let i = 0; i < 30; i++) {
      await world.look();
      world.clock.advance(GRACE_MS);
    }
    expect(world.events).toContain('OrphanVMDeletionFailed');
    world.provider.listed = vms(5);
    await world.look();
    world.clock.advance(GRACE_MS);
    await world.look();

    expect(await world.held()).toBe(0);
    expect(new Set(world.provider.deleted.map(({ metadata }) => metadata.name)).size).toBe(5);
  });

  test('are held no more when all of them are gone at once', async () => {
    const world = new OrphanWorld();
    world.provider.listed = vms(4);
    await world.looksUntilDeleted();

    world.provider.listed = [];
    await world.look();

    expect(await world.held()).toBe(0);
  });

  test.each([
    { what: 'no more when their class is gone', change: (world: OrphanWorld) => void world.classes.pop(), held: 0 },
    {
      what: 'while their class cannot be listed',
      change: (world: OrphanWorld) => void (world.provider.listed = FAILURE),
      held: 4,
    },
  ])('are held $what', async ({ change, held }) => {
    const world = new OrphanWorld();
    world.provider.listed = vms(4);
    await world.looksUntilDeleted();

    change(world);
    await world.look();

    expect(await world.held()).toBe(held);
  });

  /** Machines with their VMs, which are listed beside those without. */
  function withVMs(count: number): { machines: Machine[]; listed: ListedMachine[] } {
    const listed = vms(count).map((vm, i) => ({ ...vm, machineName: `m-${i}`, providerID: `sim:///owned-${i}` }));
    const machines = listed.map(({ machineName, providerID }) => ({
      ...machine(),
      ...anotherMachine(machineName, providerID),
    }));
    return { machines, listed };
  }

  test.each<{ what: string; change: (world: OrphanWorld) => void | Promise<void>; held: number }>([
    { what: 'some of them are gone', change: (world) => void (world.provider.listed = vms(3)), held: 3 },
    {
      what: 'a list has omitted them, and shows some of them again',
      async change(world) {
        world.provider.listed = [];
        await world.look();
        expect(await world.held()).toBe(0);
        world.provider.listed = vms(3);
      },
      held: 3,
    },
    {
      what: 'one of them has its Machine again',
      change: (world) => void (world.machines = [{ ...machine(), ...anotherMachine('lost-0', 'sim:///0') }]),
      held: 3,
    },
    {
      what: 'their class has got so many others that they are few',
      change(world) {
        const { machines, listed } = withVMs(40);
        Object.assign(world, { machines });
        world.provider.listed = [...vms(4), ...listed];
      },
      held: 4,
    },
    {
      what: 'an outage has begun their proof anew',
      change: (world) => void (world.trustedSinceMs = world.clock.monotonicMs()),
      held: 4,
    },
    {
      what: 'a permission has passed before they could be deleted',
      async change(world) {
        release(world, world.clock.now() + GRACE_MS);
        world.provider.failure = FAILURE;
        await world.look();
        expect(world.provider.deleted.splice(0)).toHaveLength(4);
        world.clock.advance(GRACE_MS);
        world.provider.listed = vms(3);
      },
      held: 3,
    },
  ])('stay held, those that are left, when $what, until somebody says so', async ({ change, held }) => {
    const world = new OrphanWorld();
    world.provider.listed = vms(4);
    await world.looksUntilDeleted();

    await change(world);
    expect(await world.looksUntilDeleted()).toBe(Infinity);
    expect(await world.held()).toBe(held);

    release(world, world.clock.now() + 2 * GRACE_MS);
    expect(await world.looksUntilDeleted()).toBeLessThan(3);
    expect(await world.held()).toBe(0);
  });

  test('are as any others once they had their Machines again', async () => {
    const world = new OrphanWorld();
    world.provider.listed = vms(4);
    await world.looksUntilDeleted();
    world.machines = vms(4).map((vm) => ({ ...machine(), ...anotherMachine(vm.machineName, vm.providerID) }));
    await world.look();
    expect(await world.held()).toBe(0);

    world.machines.splice(0, 1);

    expect(await world.looksUntilDeleted()).toBe(2);
  });

  test('are held no more when a record explains them', async () => {
    const world = new OrphanWorld();
    world.provider.listed = vms(4);
    await world.looksUntilDeleted();

    const notes = vms(4).map(({ machineName, providerID }) =>
      noteOfForcedRemoval({ ...machine(), ...anotherMachine(machineName, providerID) }),
    );
    Object.assign(world.oneClass.metadata, { annotations: Object.assign({}, ...notes) });
    world.namesakes = ['u-new'];

    expect([await world.looksUntilDeleted(), await world.held()]).toEqual([1, 0]);
  });

  describe('do not include those that were few when they came, and cannot be deleted,', () => {
    async function start(): Promise<OrphanWorld> {
      const world = new OrphanWorld();
      world.provider.listed = vms(3);
      world.provider.failure = FAILURE;
      expect(await world.looksUntilDeleted()).toBe(2);
      return world;
    }

    /** Names of what is to be deleted from now on. */
    async function deletedOf(world: OrphanWorld, count: number): Promise<ReadonlySet<string>> {
      world.provider.listed = vms(count);
      world.provider.deleted.splice(0);
      for (let i = 0; i < 3; i++) {
        world.clock.advance(GRACE_MS);
        await world.look();
      }
      return new Set(world.provider.deleted.map(({ metadata }) => metadata.name));
    }
    const THREE = ['lost-0', 'lost-1', 'lost-2'];

    test('so that others go as well', async () => {
      const world = await start();

      expect(await deletedOf(world, 4)).toEqual(new Set([...THREE, 'lost-3']));
      expect(await world.held()).toBe(0);
    });

    test('which are tried on although too many others come', async () => {
      const world = await start();

      expect(await deletedOf(world, 7)).toEqual(new Set(THREE));
      expect(await world.held()).toBe(4);
    });

    test.each([
      { what: 'and lists them still', lists: [vms(3), vms(3)] },
      { what: 'and lists them still after a list that failed', lists: [vms(3), FAILURE, vms(3)] },
    ])('although the provider has deleted them, $what', async ({ lists }) => {
      const world = new OrphanWorld();
      world.provider.listed = vms(3);
      await world.looksUntilDeleted();
      world.provider.failure = new DriverError('NotFound', 'no such VM');
      for (const listed of lists) {
        world.clock.advance(GRACE_MS);
        world.provider.listed = listed;
        await world.look();
      }

      // The fourth is proved in the look that finds out that the others stay.
      expect(await deletedOf(world, 4)).toEqual(new Set([...THREE, 'lost-3']));
      expect(world.events).toContain('OrphanVMDeletionFailed');
      expect(await world.held()).toBe(0);
    });

    test.each<{ what: string; change: (world: OrphanWorld) => void }>([
      {
        what: 'their list was not believed',
        change(world) {
          world.distrust = new Map([['sim/default/secret-1', 'doubted']]);
          world.provider.listed = vms(4);
        },
      },
      {
        what: 'they had Machines',
        change: (world) =>
          void (world.machines = vms(3).map((vm) => ({
            ...machine(),
            ...anotherMachine(vm.machineName, vm.providerID),
          }))),
      },
    ])('unless meanwhile $what', async ({ change }) => {
      const world = await start();
      change(world);
      await world.look();
      world.distrust = new Map();
      world.machines = [];

      expect(await deletedOf(world, 4)).toEqual(new Set());
      expect(await world.held()).toBe(4);
    });
  });
});
