import { describe, expect, test } from '@jest/globals';

import { machine, machineClass } from '../../../../test/builders.ts';
import type { Distrust } from './blind-accounts.ts';
import {
  anotherMachine,
  FAILURE,
  GRACE_MS,
  OrphanWorld,
  release,
  VM,
  vms,
} from '../../../../test/fakes/orphan-world.ts';

test.each([
  { who: 'that is not believed', distrusted: ['sim/default/secret-1', 'blind'], examined: [], failing: [] },
  {
    who: 'that is doubted, where none fails',
    distrusted: ['sim/default/secret-1', 'doubted'],
    examined: ['default/class-1'],
    failing: [],
  },
  {
    who: 'that is contradicted',
    distrusted: ['sim/default/secret-1', 'contradicted'],
    examined: ['default/class-1'],
    failing: ['uid'],
  },
  {
    who: 'of another account',
    distrusted: ['sim/default/other', 'blind'],
    examined: ['default/class-1'],
    failing: ['uid'],
  },
] as const)('a provider $who is asked for machines without a VM: $examined', async (row) => {
  const world = new OrphanWorld();
  world.suspects = ['uid'];
  world.distrust = new Map([row.distrusted]);

  await world.look();

  expect([world.examined, world.failing, world.goneUIDs]).toEqual([
    row.examined,
    row.failing,
    row.examined.map(() => 'uid'),
  ]);
  expect(world.distrusted.has(row.distrusted[0])).toBe(true);
});

test.each([
  { listScope: 'class', isDistrusted: false },
  { listScope: 'cluster', isDistrusted: true },
] as const)(
  'lists of the scope $listScope of another account than a distrusted one are distrusted: $isDistrusted',
  async (row) => {
    const world = new OrphanWorld();
    world.provider.listScope = row.listScope;
    world.distrust = new Map([['sim/default/other', 'blind']]);

    await world.look();

    expect(world.distrusted.has('sim/default/other')).toBe(true);
    expect(world.distrusted.has('sim/default/secret-1')).toBe(row.isDistrusted);
  },
);

test('when a look began that does not distrust an account is known of classes that it could list, but not of a look that failed', async () => {
  const world = new OrphanWorld();
  const looked = (): number => world.distrusted.lookedMs('default/class-1');
  expect(looked()).toBe(-Infinity);
  await world.look();
  const lookedMs = world.clock.monotonicMs();
  expect([looked(), world.distrusted.lookedMs('default/other')]).toEqual([lookedMs, -Infinity]);

  world.clock.advance(GRACE_MS);
  world.machines = new Error('no answer');
  await world.look();
  expect(looked()).toBe(lookedMs);

  world.machines = [];
  world.provider.listed = FAILURE;
  await world.look();
  expect(looked()).toBe(-Infinity);
});

test('the machines of a class that cannot be listed count for its account, too', async () => {
  const world = new OrphanWorld();
  await world.look();
  expect(world.unseen).toEqual([]);
  world.provider.listed = FAILURE;
  await world.look();

  expect(world.unseen).toEqual(['default/class-1']);
});

test('what GetMachineStatus says in a look counts before a VM without Machine is deleted in it', async () => {
  const world = new OrphanWorld();
  await world.look();
  world.clock.advance(GRACE_MS);
  world.contradiction = new Map([['sim/default/secret-1', 'contradicted']]);

  await world.look();

  expect([world.provider.deleted, world.events]).toEqual([[], ['OrphanVMsHeld']]);
  expect(world.distrusted.has('sim/default/secret-1')).toBe(true);
});

describe('a provider that does not show VMs of machines that work', () => {
  const ACCOUNT = 'sim/default/secret-1';

  test.each<{ verdict: Distrust }>([{ verdict: 'blind' }, { verdict: 'doubted' }, { verdict: 'contradicted' }])(
    'loses none of those that it shows instead, from the look on in which it is $verdict; that is counted and told of',
    async ({ verdict }) => {
      const world = new OrphanWorld();
      await world.look();
      world.clock.advance(GRACE_MS);
      world.distrust = new Map([[ACCOUNT, verdict]]);

      expect(await world.looksUntilDeleted()).toBe(Infinity);
      expect(new Set(world.events)).toEqual(new Set(['OrphanVMsHeld']));
      expect(world.messages.at(-1)).toMatch(/does not list the VMs of Machines with the same credentials/);
      expect(await world.held()).toBe(1);

      world.distrust = new Map();
      expect(await world.looksUntilDeleted()).toBe(1);
      expect(await world.held()).toBe(0);
    },
  );

  test('is known to have shown the VMs of others in the same look', async () => {
    const world = new OrphanWorld();
    world.machines = [
      machine((m) => void (m.spec.providerID = VM.providerID)),
      machine((m) => void Object.assign(m, anotherMachine('m-2', 'sim:///m-2'))),
    ];
    await world.look();

    expect(world.listed).toEqual(['default/m-1']);
  });

  test('loses one that was proved while the machines were shown, also beside others that are held', async () => {
    const world = new OrphanWorld();
    world.apartMs = world.clock.monotonicMs();
    world.distrust = new Map([[ACCOUNT, 'contradicted']]);
    await world.look();
    world.clock.advance(GRACE_MS);
    world.provider.listed = [{ ...VM, providerID: 'sim:///later', machineName: 'later' }, VM];

    expect(await world.looksUntilDeleted()).toBe(1);
    world.clock.advance(GRACE_MS);
    await world.look();
    expect(new Set(world.provider.deleted.map(({ spec }) => spec?.providerID))).toEqual(new Set([VM.providerID]));
    expect([await world.held(), world.events]).toEqual([1, ['OrphanVMDeleted', 'OrphanVMsHeld']]);
  });

  test('has the limit told of as long as that holds others', async () => {
    const world = new OrphanWorld();
    world.apartMs = world.clock.monotonicMs();
    world.distrust = new Map([[ACCOUNT, 'contradicted']]);
    world.provider.listed = vms(4);
    await world.look();
    world.provider.listed = [VM, ...vms(4)];
    for (let i = 0; i < 2; i++) {
      world.clock.advance(GRACE_MS);
      await world.look();
    }

    expect([world.provider.deleted, await world.held()]).toEqual([[], 5]);
    expect(world.messages.at(-1)).toMatch(/^More than 10 % of the VMs of this class.* annotate --overwrite /);
  });

  test('has none of those reported as without a Machine in a dry run', async () => {
    const world = new OrphanWorld(true);
    await world.looksUntilDeleted();
    expect(world.events).toEqual(['OrphanVMFound']);

    const doubted = new OrphanWorld(true);
    doubted.distrust = new Map([[ACCOUNT, 'doubted']]);
    await doubted.looksUntilDeleted();
    expect(new Set(doubted.events)).toEqual(new Set(['OrphanVMsHeld']));
  });

  test('loses none by a permission either, which was given for what another list had shown', async () => {
    const world = new OrphanWorld();
    world.distrust = new Map([[ACCOUNT, 'blind']]);
    world.provider.listed = vms(4);
    release(world, world.clock.now() + 100 * GRACE_MS);

    expect(await world.looksUntilDeleted()).toBe(Infinity);
    expect(world.messages.at(-1)).not.toMatch(/annotate/);
    expect(await world.held()).toBe(4);
  });

  test('loses none that we deleted before', async () => {
    const world = new OrphanWorld();
    world.distrust = new Map([[ACCOUNT, 'blind']]);
    world.gone.add({ name: 'm-1', nodeName: 'm-1', providerID: VM.providerID });

    expect(await world.looksUntilDeleted()).toBe(Infinity);
  });

  test('loses none that a list of another account shows, too', async () => {
    const world = new OrphanWorld();
    world.classes.push(
      machineClass((c) => {
        c.metadata.name = 'class-2';
        c.secretRef = { name: 'secret-2', namespace: 'default' };
      }),
    );
    world.distrust = new Map([['sim/default/secret-2', 'blind']]);

    expect(await world.looksUntilDeleted()).toBe(Infinity);
  });

  test.each([
    { what: 'no other account', account: 'sim/default/other', scope: 'class', looks: 2 },
    {
      what: 'other accounts of its driver in lists of the whole cluster',
      account: 'sim/default/other',
      scope: 'cluster',
      looks: Infinity,
    },
    { what: 'no other driver', account: 'simple/default/other', scope: 'cluster', looks: 2 },
  ] as const)('holds up $what', async ({ account, scope, looks }) => {
    const world = new OrphanWorld();
    world.provider.listScope = scope;
    world.provider.listed = [{ ...VM, machineNamespace: 'default' }];
    world.distrust = new Map([[account, 'blind']]);

    expect(await world.looksUntilDeleted()).toBe(looks);
  });
});
