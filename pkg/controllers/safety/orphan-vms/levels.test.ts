import { describe, expect, test } from '@jest/globals';

import { machine, machineClass } from '../../../../test/builders.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import type { ListedMachine } from '../../../driver/driver.ts';
import { noteOfForcedRemoval } from '../../vms/forced-removals.ts';
import { FAILURE, GRACE_MS, OrphanWorld, Provider, release, vms } from '../../../../test/fakes/orphan-world.ts';

describe('too many VMs without a Machine at once', () => {
  describe('of many small classes with the same credentials, few of each', () => {
    const NAMES = Array.from({ length: 15 }, (_, i) => `pool-${i}`);
    const vmOf = (name: string, i: number): ListedMachine => {
      const machineName = `${name}-x${i}`;
      return { providerID: `sim:///${machineName}`, machineName, machineUID: undefined, machineNamespace: 'default' };
    };
    const classOf = (name: string, secret: string): MachineClass =>
      machineClass((c) => {
        c.metadata.name = name;
        c.secretRef = { name: secret, namespace: 'default' };
      });

    /** Classes of 4 VMs each, of which `lost` have no Machine. */
    function start(listScope: 'class' | 'cluster', { lost = 3, secretOf = () => 'secret-1' }: Start = {}): OrphanWorld {
      const world = new OrphanWorld();
      world.classes.splice(0, 1, ...NAMES.map((name) => classOf(name, secretOf(name))));
      const all = NAMES.flatMap((name) => [0, 1, 2, 3].map((i) => vmOf(name, i)));
      for (const name of NAMES) {
        const provider = Object.assign(new Provider(), { listScope });
        provider.listed = listScope === 'cluster' ? all : all.filter((vm) => vm.machineName.startsWith(`${name}-`));
        // What is deleted is counted in one place.
        provider.delete = (request) => world.provider.delete(request);
        world.otherProviders.set(name, provider);
      }
      world.machines = NAMES.flatMap((name) =>
        Array.from({ length: 4 - lost }, (_, i) => {
          const { machineName, providerID } = vmOf(name, i);
          return machine((m) => {
            Object.assign(m.metadata, { name: machineName, uid: `uid-of-${machineName}` });
            m.spec = { class: { kind: 'MachineClass', name }, providerID };
          });
        }),
      );
      return world;
    }
    interface Start {
      readonly lost?: number;
      readonly secretOf?: (name: string) => string;
    }

    test.each([{ listScope: 'class' }, { listScope: 'cluster' }] as const)(
      'are held together, and released class by class, with lists of scope $listScope',
      async ({ listScope }) => {
        const world = start(listScope);

        expect(await world.looksUntilDeleted()).toBe(Infinity);
        expect([await world.held(), new Set(world.objects)]).toEqual([45, new Set(NAMES)]);
        expect(world.messages.at(-1)).toMatch(/^More than 10 % of the VMs of all classes .* annotate --overwrite /);

        release(world, world.clock.now() + 100 * GRACE_MS, world.classes[0]);
        await world.look();
        expect(new Set(world.provider.deleted.map(({ metadata }) => metadata.name))).toEqual(
          new Set([1, 2, 3].map((i) => `pool-0-x${i}`)),
        );
        expect(await world.held()).toBe(42);
      },
    );

    test('are deleted when they are few of all', async () => {
      const few = start('cluster', { lost: 0 });
      few.machines = (few.machines as Machine[]).filter(({ metadata }) => !/-[0-5]-x0$/u.test(metadata.name));

      expect(await few.looksUntilDeleted()).toBe(2);
    });

    test.each([{ listScope: 'class' }, { listScope: 'cluster' }] as const)(
      'are held, too, when each class has a Secret of its own, which may be for the same account, with lists of scope $listScope',
      async ({ listScope }) => {
        const world = start(listScope, { secretOf: (name) => name });

        expect(await world.looksUntilDeleted()).toBe(Infinity);
        expect(await world.held()).toBe(45);
      },
    );

    /** One look, in which only some classes can be listed. */
    async function lookAt(world: OrphanWorld, names: readonly string[]): Promise<void> {
      const others = NAMES.filter((name) => !names.includes(name)).map((name) => world.otherProviders.get(name));
      const before = others.map((provider) => provider?.listed);
      for (const provider of others) Object.assign(provider ?? {}, { listed: FAILURE });
      world.clock.advance(GRACE_MS);
      await world.look();
      for (const [i, provider] of others.entries()) Object.assign(provider ?? {}, { listed: before[i] });
    }

    test('stay held when only one class can be listed in each look', async () => {
      const world = start('class');
      await world.looksUntilDeleted();

      for (const name of NAMES) await lookAt(world, [name]);

      expect([world.provider.deleted, await world.held()]).toEqual([[], 45]);
    });

    test('count as their class was listed last while it cannot be listed, also before they are proved', async () => {
      const world = start('class');
      await world.look();

      for (const name of NAMES) await lookAt(world, [name]);

      expect(world.provider.deleted).toEqual([]);
    });

    test('are deleted up to the limit only, for a day, when no two classes can be listed at once', async () => {
      const world = start('class');
      for (const name of NAMES) for (let i = 0; i < 3; i++) await lookAt(world, [name]);

      expect(new Set(world.provider.deleted.map(({ metadata }) => metadata.name))).toEqual(
        new Set([1, 2, 3].map((i) => `pool-0-x${i}`)),
      );
      expect(await world.held()).toBe(42);
    });

    function namesOf(world: OrphanWorld): readonly string[] {
      return world.provider.deleted.map(({ metadata }) => metadata.name);
    }

    /** The first VM of a class loses its Machine. */
    function lose(world: OrphanWorld, name: string): void {
      world.machines = (world.machines as Machine[]).filter(({ metadata }) => metadata.name !== `${name}-x0`);
    }

    test.each([
      { what: 'could not be listed', listed: NAMES },
      { what: 'can never be listed', listed: NAMES.slice(0, -1) },
    ])('count for a day, and hold others no longer, when they were deleted while a class $what', async (row) => {
      const world = start('class', { lost: 0 });
      const loseInTurn = async (names: readonly string[], listed: readonly string[]): Promise<void> => {
        for (const name of names) {
          lose(world, name);
          for (let i = 0; i < 2; i++) await lookAt(world, listed);
          const provider = world.otherProviders.get(name) as Provider;
          const isDeleted = world.provider.deleted.some(({ metadata }) => metadata.name === `${name}-x0`);
          if (isDeleted) provider.listed = (provider.listed as readonly ListedMachine[]).slice(1);
        }
      };
      await loseInTurn(NAMES.slice(0, 7), NAMES.slice(0, -1));
      expect([world.provider.deleted.length, await world.held()]).toEqual([5, 2]);

      world.clock.advance(86_400_000);
      for (let i = 0; i < 2; i++) await lookAt(world, row.listed);
      expect([new Set(namesOf(world)).size, await world.held()]).toEqual([7, 0]);
    });

    test('are held although those of the other accounts are not believed in the same look, whichever these are', async () => {
      const world = start('class', { lost: 1, secretOf: (name) => name });
      await world.look();

      for (const believed of NAMES) {
        const others = NAMES.filter((name) => name !== believed);
        world.distrust = new Map(others.map((name) => [`sim/default/${name}`, 'contradicted']));
        await lookAt(world, NAMES);
      }

      expect([namesOf(world), await world.held()]).toEqual([[], 15]);
    });

    test('are held beside what classes have shown once that cannot be listed since, and not for longer than these exist', async () => {
      const world = start('class', { lost: 0 });
      lose(world, 'pool-0');
      const isOther = ({ metadata }: Machine): boolean => /^pool-1[34]-x[0-2]$/u.test(metadata.name);
      world.machines = (world.machines as Machine[]).filter((one) => !isOther(one));
      await world.look();
      for (let i = 0; i < 3; i++) await lookAt(world, NAMES.slice(0, 13));
      expect([namesOf(world), await world.held()]).toEqual([[], 1]);
      expect(world.messages.at(-1)).toMatch(/^More than 10 % of the VMs of all classes .* annotate --overwrite /);

      world.classes.splice(13);
      await lookAt(world, NAMES.slice(0, 13));

      expect([namesOf(world), await world.held()]).toEqual([['pool-0-x0'], 0]);
    });

    test('are held with what cannot be proved yet, because its class could not be listed until just now', async () => {
      const world = start('class', { lost: 0 });
      for (const name of NAMES.slice(0, 9)) lose(world, name);
      await lookAt(world, NAMES.slice(3));

      for (let i = 0; i < 3; i++) await lookAt(world, NAMES);

      expect([world.provider.deleted, await world.held()]).toEqual([[], 9]);
    });

    test('do not count once they are gone when all classes could be listed for long enough', async () => {
      const world = start('class', { lost: 0 });
      await lookAt(world, NAMES.slice(3));
      for (let i = 0; i < 2; i++) await lookAt(world, NAMES);
      for (const name of NAMES.slice(0, 9)) {
        lose(world, name);
        for (let i = 0; i < 2; i++) await lookAt(world, NAMES);
      }

      expect([new Set(world.provider.deleted.map((one) => one.metadata.name)).size, await world.held()]).toEqual([
        9, 0,
      ]);
    });

    test('count for all of their classes while some of these cannot be listed', async () => {
      const world = start('class', { lost: 0 });
      for (const name of NAMES.slice(0, 5)) lose(world, name);
      await world.look();

      await lookAt(world, NAMES.slice(0, 5));

      expect(new Set(world.provider.deleted.map(({ metadata }) => metadata.name)).size).toBe(5);
    });

    test('are held for their account, too, where it is a small part of what the driver has', async () => {
      const world = start('class', { lost: 0, secretOf: (name) => (name < 'pool-2' ? 'small' : 'secret-1') });
      // Of 5 classes with 4 VMs each.
      for (const name of ['pool-0', 'pool-1', 'pool-10', 'pool-11']) lose(world, name);

      expect([await world.looksUntilDeleted(), await world.held()]).toEqual([Infinity, 4]);
    });

    test('do not count for others when their own class holds what is left of too many', async () => {
      const world = start('class', { lost: 0 });
      const all = world.machines as Machine[];
      world.machines = all.filter(({ metadata }) => !metadata.name.startsWith('pool-0-'));
      await world.looksUntilDeleted();
      expect(await world.held()).toBe(4);
      world.machines = all.filter(({ metadata }) => !/^pool-0-x[0-2]$/u.test(metadata.name));
      for (const name of NAMES.slice(1, 7)) lose(world, name);

      await world.looksUntilDeleted();

      expect(new Set(world.provider.deleted.map(({ metadata }) => metadata.name)).size).toBe(6);
      expect(await world.held()).toBe(3);
    });

    test('count for others as long as they are held together', async () => {
      const world = start('class', { lost: 0 });
      for (const name of NAMES.slice(0, 7)) lose(world, name);
      expect([await world.looksUntilDeleted(), await world.held()]).toEqual([Infinity, 7]);
      lose(world, 'pool-7');

      expect([await world.looksUntilDeleted(), await world.held()]).toEqual([Infinity, 8]);
    });

    test('stay held when one of their classes is released, although the rest is not too many', async () => {
      const world = start('class', { lost: 0 });
      for (const name of NAMES.slice(0, 7)) lose(world, name);
      expect([await world.looksUntilDeleted(), await world.held()]).toEqual([Infinity, 7]);

      release(world, world.clock.now() + 2 * GRACE_MS, world.classes[0]);
      await world.look();
      world.clock.advance(GRACE_MS);
      await world.look();

      expect(new Set(world.provider.deleted.map(({ metadata }) => metadata.name))).toEqual(new Set(['pool-0-x0']));
      expect(await world.held()).toBe(6);
      expect(world.messages.at(-1)).toMatch(
        /^VMs of this class have no Machine, and there were too many at once before/,
      );
    });

    test('do not count when a record explains them', async () => {
      const world = start('class', { lost: 1 });
      for (const name of NAMES) {
        const { machineName } = vmOf(name, 3);
        const gone = machine((m) => {
          Object.assign(m.metadata, { name: machineName, uid: machineName, deletionTimestamp: '2026-01-01T00:00:00Z' });
        });
        world.removed.deletingVM(machineName);
        world.removed.deletedVM(machineName);
        expect(world.removed.record(gone)).toBe('in-order');
      }

      expect(await world.looksUntilDeleted()).toBe(2);
      expect(await world.held()).toBe(0);
    });
  });

  describe('in lists of a whole cluster, which 40 other machines are in, too,', () => {
    const OURS = { machineNamespace: 'default' };
    const owned = (i: number): Machine => {
      const { metadata, spec, ...rest } = machine();
      const named = { ...metadata, name: `big-${i}`, uid: `uid-of-big-${i}` };
      return { ...rest, metadata: named, spec: { ...spec, providerID: `sim:///big-${i}` } };
    };
    const shownOf = ({ metadata, spec }: Machine): ListedMachine => ({
      providerID: spec.providerID ?? '',
      machineName: metadata.name,
      machineUID: metadata.uid,
      ...OURS,
    });

    /** Classes class-1, which is big, and class-2, of whose set there is one Machine if any. */
    function start(lost: readonly ListedMachine[], hasOther = false): OrphanWorld {
      const world = new OrphanWorld();
      world.provider.listScope = 'cluster';
      world.classes.push(machineClass((c) => void (c.metadata.name = 'class-2')));
      const other = machine((m) => {
        Object.assign(m.metadata, { name: 'lost-x', uid: 'uid-of-lost-x' });
        m.spec = { class: { kind: 'MachineClass', name: 'class-2' }, providerID: 'sim:///lost-x' };
      });
      world.machines = [...Array.from({ length: 40 }, (_, i) => owned(i)), ...(hasOther ? [other] : [])];
      world.provider.listed = [...world.machines.map(shownOf), ...lost.map((vm) => ({ ...vm, ...OURS }))];
      return world;
    }

    test('are held by the limit of their class alone, and released by it', async () => {
      const world = start(vms(4), true);
      expect(await world.looksUntilDeleted()).toBe(Infinity);
      expect([await world.held(), new Set(world.objects)]).toEqual([4, new Set(['class-2'])]);

      release(world, world.clock.now() + 100 * GRACE_MS);
      expect(await world.looksUntilDeleted()).toBe(Infinity);
      release(world, world.clock.now() + 2 * GRACE_MS, world.classes[1]);
      expect(await world.looksUntilDeleted()).toBe(1);
    });

    test('are held, too, when no Machine tells of which class they are', async () => {
      const world = start(vms(4));

      expect(await world.looksUntilDeleted()).toBe(Infinity);
      expect(await world.held()).toBe(4);
      expect(world.messages.at(-1)).toMatch(/^Too many VMs in the lists of the whole cluster.* annotate --overwrite /);

      world.provider.listed = FAILURE;
      await world.look();
      expect(await world.held()).toBe(4);
    });

    test('are not released by the class through which they are reached while their own cannot be listed', async () => {
      const world = start(vms(4), true);
      const other = Object.assign(new Provider(), { listScope: 'cluster', listed: FAILURE });
      world.otherProviders.set('class-2', other);
      release(world, world.clock.now() + 100 * GRACE_MS);

      expect(await world.looksUntilDeleted()).toBe(Infinity);
      expect([await world.held(), new Set(world.objects)]).toEqual([4, new Set(['class-2'])]);

      release(world, world.clock.now() + 2 * GRACE_MS, world.classes[1]);
      expect(await world.looksUntilDeleted()).toBe(1);
    });

    test('are explained by the notes of their class, also while that cannot be listed', async () => {
      const world = start(vms(4), true);
      world.otherProviders.set('class-2', Object.assign(new Provider(), { listScope: 'cluster', listed: FAILURE }));
      const notes = vms(4).map(({ machineName, providerID }) => {
        const { metadata, spec, ...rest } = machine();
        const named = { ...metadata, name: machineName, uid: `uid-of-${machineName}` };
        return noteOfForcedRemoval({ ...rest, metadata: named, spec: { ...spec, providerID } });
      });
      Object.assign(world.classes[1]?.metadata ?? {}, { annotations: Object.assign({}, ...notes) });

      expect([await world.looksUntilDeleted(), await world.held()]).toEqual([2, 0]);
    });

    test('are deleted when their class has so many', async () => {
      const lost = vms(4).map((vm, i) => ({ ...vm, machineName: `big-lost${i}` }));

      expect(await start(lost).looksUntilDeleted()).toBe(2);
    });
  });
});
