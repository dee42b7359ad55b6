import { describe, expect, test } from '@jest/globals';

import { machine, machineClass, node } from '../../../../test/builders.ts';
import { FAILURE, GRACE_MS, OrphanWorld, Provider } from '../../../../test/fakes/orphan-world.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { ListedMachine } from '../../../driver/driver.ts';
import { DriverError } from '../../../driver/error.ts';
import { CLASS_INDEX, classIndex } from '../../../operator/indexes/class-index.ts';
import { MACHINE_INDEXES } from '../../../operator/indexes/machine-indexes.ts';
import { BlindAccounts } from './blind-accounts.ts';
import { VanishedVMs } from './vanished-vms.ts';

interface Driver {
  readonly scope: 'class' | 'cluster';
  readonly secrets?: 'one Secret' | 'a Secret for each class';
  /** What GetMachineStatus says of a VM that is in no list. */
  readonly status?: 'that it is there' | 'NotFound' | 'Unimplemented';
}

/** Classes of one driver, of whose lists nothing that judges them is faked. VMs have the names of their Machines: class, number. */
class DriverWorld extends OrphanWorld {
  readonly owned: MemoryInformer<Machine>;
  /** Whether the time of a look is over while GetMachineStatus is waited for. */
  readonly time: { isOver: boolean };
  readonly #driver: Driver;

  constructor(driver: Driver) {
    const time = { isOver: false };
    const owned = new MemoryInformer<Machine>([], { ...MACHINE_INDEXES, [CLASS_INDEX]: classIndex });
    super(false, {
      parts(given) {
        const deps = { ...given, machines: owned };
        const vanished = new VanishedVMs(
          deps as unknown as ConstructorParameters<typeof VanishedVMs>[0],
          given.missingVMs,
        );
        // Who fails is another question.
        vanished.fail = () => Promise.resolve();
        const examine = vanished.examine.bind(vanished);
        vanished.examine = async (unlisted, ...rest) => {
          if (time.isOver && unlisted.some(({ machines }) => machines.length > 0)) throw new Error('took too long');
          return await examine(unlisted, ...rest);
        };
        return { machines: owned, blindAccounts: new BlindAccounts(deps), vanished };
      },
    });
    this.owned = owned;
    this.time = time;
    this.#driver = driver;
    this.classes.pop();
  }

  class(name: string): void {
    const { scope, secrets = 'one Secret', status = 'NotFound' } = this.#driver;
    const secretRef = { name: secrets === 'one Secret' ? 'cloud' : name, namespace: 'default' };
    this.classes.push(machineClass((c) => void (Object.assign(c, { secretRef }).metadata.name = name)));
    const provider = Object.assign(new Provider(), { listScope: scope, listed: [] });
    // What is deleted is noted in one place.
    provider.delete = (request) => this.provider.delete(request);
    provider.getStatus = ({ machine: { metadata } }) =>
      status === 'that it is there'
        ? Promise.resolve({ providerID: idOf(metadata.name), nodeName: metadata.name, addresses: [] })
        : Promise.reject(new DriverError(status, 'x'));
    this.otherProviders.set(name, provider);
  }

  own(names: readonly string[], ready: 'True' | 'Unknown' = 'True'): void {
    for (const name of names) {
      this.owned.put(
        machine((m) => {
          Object.assign(m.metadata, { name, uid: `uid-of-${name}`, labels: { node: name } });
          m.spec = { class: { kind: 'MachineClass', name: classOf(name) }, providerID: idOf(name) };
        }),
      );
      this.nodes.put(
        node((n) => {
          n.metadata.name = name;
          n.spec = { providerID: idOf(name) };
          n.status.conditions = [{ type: 'Ready', status: ready }];
        }),
      );
    }
    this.machines = [...this.owned.list()];
  }

  disown(name: string): void {
    this.owned.remove(`default/${name}`);
    this.machines = [...this.owned.list()];
  }

  /** What the lists show from now on, but for classes that cannot be listed. */
  list(vms: readonly (ListedMachine & { readonly class: string })[], unlistable: readonly string[] = []): void {
    for (const [name, provider] of this.otherProviders) {
      const isShown = (of: string): boolean => this.#driver.scope === 'cluster' || of === name;
      provider.listed = unlistable.includes(name) ? FAILURE : vms.filter((vm) => isShown(vm.class));
    }
  }

  /** The look in which the first VM is deleted; Infinity if none is. */
  async firstDeletion(looks: number, before: (look: number) => void): Promise<number> {
    for (let look = 1; look <= looks; look++) {
      before(look);
      await this.look();
      if (this.provider.deleted.length > 0) return look;
      this.clock.advance(GRACE_MS);
    }
    return Infinity;
  }
}

const idOf = (name: string): string => `sim:///${name}`;
const classOf = (name: string): string => name.replace(/\d+$/u, '');
const names = (set: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${set}${i}`);
const vmOf = (name: string) => ({
  class: classOf(name),
  providerID: idOf(name),
  machineName: name,
  machineUID: `uid-of-${name}`,
  machineNamespace: 'default',
});

const DRIVERS = (['class', 'cluster'] as const).flatMap((scope) =>
  (['one Secret', 'a Secret for each class'] as const).flatMap((secrets) =>
    (['NotFound', 'Unimplemented'] as const).map((status) => ({ scope, secrets, status })),
  ),
);

describe.each(DRIVERS)('with lists of scope $scope, $secrets and GetMachineStatus $status,', (driver) => {
  // A VM that is just gone, and whose Node is ready still, has its account doubted for a look; lists of a whole cluster are of all accounts.
  const isOneAccount = driver.scope === 'cluster' || driver.secrets === 'one Secret';

  test.each<{
    beside: string;
    own?: string;
    ready?: 'Unknown';
    until?: number;
    failing?: readonly string[];
    look: number;
  }>([
    { beside: 'nothing else', look: 2 },
    { beside: 'a lost VM whose Node is not ready', own: 'b9', ready: 'Unknown', until: 0, look: 2 },
    { beside: 'a VM that is gone in look 2, as is its Machine in 3', own: 'b9', until: 1, look: isOneAccount ? 3 : 2 },
    { beside: 'a class without Machines that cannot be listed', failing: ['z'], look: 2 },
    { beside: 'a class with a Machine that cannot be listed', failing: ['z'], own: 'z0', look: 2 },
  ])('the one VM without a Machine is deleted in look $look beside $beside', async (row) => {
    const { own, ready, until = Infinity, failing = [] } = row;
    const world = new DriverWorld(driver);
    for (const name of ['a', 'b', ...failing]) world.class(name);
    world.own([...names('a', 5), ...names('b', 5)]);
    const others = own === undefined ? [] : [own];
    world.own(others, ready);

    const deletedIn = await world.firstDeletion(4, (look) => {
      const shown = [...names('a', 6), ...names('b', 5), ...(look <= until ? others : [])];
      world.list(shown.map(vmOf), failing);
      if (look === 3) world.disown('b9');
    });

    expect(deletedIn).toBe(row.look);
    expect([world.provider.deleted.map(({ metadata }) => metadata.name), await world.held()]).toEqual([['a5'], 0]);
  });
});

test.each(['one Secret', 'a Secret for each class'] as const)(
  'GetMachineStatus is called for the Machines of a class while it does not return for those of others with %s',
  async (secrets) => {
    const world = new DriverWorld({ scope: 'class', secrets });
    const asked: string[] = [];
    for (const name of ['a', 'b', 'c']) {
      world.class(name);
      world.otherProviders.get(name)!.getStatus = ({ machine: { metadata } }) => {
        asked.push(metadata.name);
        return new Promise(() => undefined);
      };
    }
    world.own(['a0', 'b0', 'c0'], 'Unknown');
    void world.look();
    for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));

    expect(asked).toEqual(['a0', 'b0', 'c0']);
  },
);

test('GetMachineStatus is called for no more than 500 Machines at once, however many Secrets may be of one account', async () => {
  const world = new DriverWorld({ scope: 'class', secrets: 'a Secret for each class' });
  let asked = 0;
  const letters = Array.from('abcdefghijklmnopqrst');
  for (const name of letters) {
    world.class(name);
    world.otherProviders.get(name)!.getStatus = () => {
      asked += 1;
      return new Promise(() => undefined);
    };
  }
  world.own(
    letters.flatMap((name) => names(name, 50)),
    'Unknown',
  );
  void world.look();
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));

  expect(asked).toBe(500);
});

test('a NotFound of before a look in which the provider is blind does not count, although this look did not come to its end', async () => {
  const world = new DriverWorld({ scope: 'class', secrets: 'a Secret for each class' });
  for (const name of ['a', 'b']) world.class(name);
  world.own(['a9', 'b9'], 'Unknown');
  world.own(names('a', 4));
  world.list([...names('a', 4), 'b9'].map(vmOf));
  await world.look();
  expect(world.missingVMs.has('uid-of-a9')).toBe(true);
  world.clock.advance(GRACE_MS);
  world.time.isOver = true;
  world.list([]);
  await world.look();

  expect(world.missingVMs.has('uid-of-a9')).toBe(false);
});

describe.each([{ scope: 'class' }, { scope: 'cluster' }] as const)(
  'with lists of scope $scope and GetMachineStatus that finds VMs which these omit,',
  ({ scope }) => {
    const start = (): DriverWorld => {
      const world = new DriverWorld({ scope, status: 'that it is there' });
      for (const name of ['a', 'b']) world.class(name);
      return world;
    };

    test('a VM without a Machine is deleted although one that was terminated is always waited for', async () => {
      const world = start();
      world.own(names('a', 3));
      world.own(names('b', 20), 'Unknown');
      // Each is found for ten looks, and the next one is terminated after eight: b0 before the first look.
      const deletedIn = await world.firstDeletion(40, (look) => {
        for (const [i, name] of names('b', 20).entries()) if (look === 8 * i + 11) world.disown(name);
        world.list([...names('a', 4), ...names('b', 20).filter((_, i) => look < 8 * i + 1)].map(vmOf));
      });

      expect([deletedIn, world.provider.deleted[0]?.metadata.name]).toEqual([11, 'a3']);
    });

    /** That VM as a driver shows it that has other IDs and names by now. */
    const renamed = (name: string) => ({
      ...vmOf(name),
      providerID: `sim:///z/${name}`,
      machineName: `ip-${name}`,
      machineUID: undefined,
    });

    test.each<{
      how: string;
      isRenamed: (i: number, look: number) => boolean;
      unlistable?: readonly number[];
      failing?: string;
    }>([
      { how: 'from the beginning', isRenamed: () => true },
      { how: 'from the beginning, beside lists that fail at first', isRenamed: () => true, unlistable: [1] },
      { how: 'all at once', isRenamed: (_i, look) => look >= 4 },
      { how: 'all at once, beside lists that fail then', isRenamed: (_i, look) => look >= 4, unlistable: [4, 6] },
      { how: 'one after the other', isRenamed: (i, look) => look >= 4 + 2 * i },
      { how: 'back and forth', isRenamed: (_i, look) => look % 4 >= 2 },
      {
        how: 'back and forth, beside lists that fail',
        isRenamed: (_i, look) => look !== 2,
        unlistable: [2],
        failing: 'a',
      },
    ])(
      'none is deleted whose ID and name the driver changes $how',
      async ({ isRenamed, unlistable = [], failing = 'b' }) => {
        const world = start();
        world.own(names('b', 3), 'Unknown');

        const deletedIn = await world.firstDeletion(12, (look) => {
          const vms = names('b', 3).map((name, i) => (isRenamed(i, look) ? renamed(name) : vmOf(name)));
          world.list(vms, unlistable.includes(look) ? [failing] : []);
        });

        expect(deletedIn).toBe(Infinity);
      },
    );

    test('none is deleted whose ID and name the driver has changed while their class cannot be listed after a look that did not come to its end', async () => {
      const world = start();
      world.own(names('b', 3), 'Unknown');

      const deletedIn = await world.firstDeletion(6, (look) => {
        world.time.isOver = look === 2;
        const vms = names('b', 3).map(renamed);
        world.list(vms, look > 2 ? ['b'] : []);
        // Both classes are of one account, and so are the lists.
        world.otherProviders.get('a')!.listed = vms;
      });

      expect(deletedIn).toBe(Infinity);
    });

    test('none is deleted whose ID and name the driver has changed while their class cannot be listed after a look that missed another VM of it, whose Node was ready', async () => {
      const world = start();
      world.own(names('b', 3), 'Unknown');
      world.own(['b9']);

      const deletedIn = await world.firstDeletion(6, (look) => {
        const vms = names('b', 3).map(renamed);
        world.list([...vms, ...(look === 1 ? [vmOf('b9')] : [])], look > 2 ? ['b'] : []);
        world.otherProviders.get('a')!.listed = vms;
        if (look === 3) world.disown('b9');
      });

      expect(deletedIn).toBe(Infinity);
    });

    test('none is deleted whose ID and name the driver changes again after looks that showed the former ones and did not come to their end', async () => {
      const world = start();
      world.own([...names('b', 3), 'a0'], 'Unknown');

      const deletedIn = await world.firstDeletion(8, (look) => {
        world.time.isOver = look > 1 && look < 5;
        // The one of the other class is waited for.
        const vms = names('b', 3).map((name) => (world.time.isOver ? vmOf(name) : renamed(name)));
        world.list([...vms, ...(world.time.isOver ? [] : [vmOf('a0')])]);
      });

      expect(deletedIn).toBe(Infinity);
    });
  },
);
