import { describe, expect, test } from '@jest/globals';

import { machine, machineClass } from '../../../../test/builders.ts';
import { MACHINE_FINALIZER } from '../../../apis/machine/v1alpha1/labels.ts';
import type { ListedMachine } from '../../../driver/driver.ts';
import { noteOfForcedRemoval } from '../../vms/forced-removals.ts';
import { FAILURE, GRACE_MS, OrphanWorld, PERIOD_MS, Provider, VM } from '../../../../test/fakes/orphan-world.ts';

// promise: openstack/cloud/second-look-shows
test('a VM that no Machine has is deleted by its provider id alone, with the second look', async () => {
  const world = new OrphanWorld();

  expect(await world.looksUntilDeleted()).toBe(2);

  // A driver that is told a UID would also find the VM of the Machine that this one is a twin of.
  expect(world.provider.deleted).toEqual([
    { metadata: { name: 'm-1', namespace: 'default' }, spec: { providerID: 'sim:///m-1' } },
  ]);
});

test('the states of VMs that a look has shown are known until one does not show them', async () => {
  const world = new OrphanWorld();
  world.provider.listed = [{ ...VM, state: 'SHUTOFF' }];
  await world.look();
  expect(world.vmStates.get(VM.providerID)?.state).toBe('SHUTOFF');

  world.provider.listed = FAILURE;
  await world.look();
  expect(world.vmStates.get(VM.providerID)?.state).toBe('SHUTOFF');
  world.provider.listed = [];
  await world.look();

  expect(world.vmStates.get(VM.providerID)).toBeUndefined();
});

test('states of VMs are looked at between searches, whose time does not change', async () => {
  const world = new OrphanWorld();
  world.machines = [machine()];
  world.provider.listed = [];
  expect(await world.pass()).toBe(PERIOD_MS);
  expect([world.provider.lists, world.stateLooks]).toEqual([1, 1]);

  world.statesDueMs = 60_000;
  expect(await world.pass()).toBe(60_000);
  world.clock.advance(PERIOD_MS - 10_000);
  expect(await world.pass()).toBe(10_000);
  expect([world.provider.lists, world.stateLooks]).toEqual([1, 3]);
  world.clock.advance(10_000);
  expect(await world.pass()).toBe(60_000);
  expect([world.provider.lists, world.stateLooks]).toEqual([2, 1]);
});

test('a look counts as one only when all classes could be listed; before the first one, the beginning does', async () => {
  const world = new OrphanWorld();
  const begunMs = world.clock.now();
  world.provider.listed = FAILURE;
  await world.look();
  world.clock.advance(GRACE_MS);
  await world.look();
  const before = await world.lastLookMs();
  world.provider.listed = [VM];
  await world.look();

  expect(before).toBe(begunMs);
  expect(await world.lastLookMs()).toBe(begunMs + GRACE_MS);
});

test('machines of a driver that cannot list are asked for by themselves, and looked at again soon', async () => {
  const world = new OrphanWorld();
  world.provider.methods = new Set();
  world.silentSuspects = ['uid'];

  expect(await world.pass()).toBe(GRACE_MS);
  expect([world.silent, world.examined]).toEqual([['default/class-1'], []]);
  expect(world.missingVMs.has('uid')).toBe(true);

  world.silentSuspects = [];
  await world.look();

  expect(world.missingVMs.has('uid')).toBe(false);
});

test.each([
  { what: 'carries no namespace, in a list of a whole cluster', machineNamespace: undefined, shown: [VM.providerID] },
  { what: 'carries another namespace', machineNamespace: 'another', shown: [] },
])('of a VM that $what the machine with its ID has: $shown', async ({ machineNamespace, shown }) => {
  const world = new OrphanWorld();
  world.provider.listScope = 'cluster';
  world.provider.listed = [{ ...VM, machineNamespace }];

  await world.look();

  expect(world.shown).toEqual(shown);
});

test('VMs of another namespace are logged once, until a list is without them', async () => {
  const world = new OrphanWorld();
  world.provider.listScope = 'cluster';
  const foreign = { ...VM, machineNamespace: 'another' };
  const isOf = (fields: object): boolean => 'vms' in fields;
  for (const listed of [[foreign, { ...foreign, providerID: 'sim:///2' }], FAILURE, [foreign]]) {
    world.provider.listed = listed;
    await world.look();
  }

  const once = { class: 'default/class-1', vms: 2, named: ['m-1 (sim:///m-1)', 'm-1 (sim:///2)'] };
  expect(world.warned.filter(isOf)).toEqual([once]);

  for (const listed of [[], [foreign]]) {
    world.provider.listed = listed;
    await world.look();
  }
  expect(world.warned.filter(isOf)).toEqual([once, { ...once, vms: 1, named: ['m-1 (sim:///m-1)'] }]);
});

test('a VM that has got a Machine since the last look is not deleted', async () => {
  const world = new OrphanWorld();
  world.isOwned = true;

  expect(await world.looksUntilDeleted()).toBe(Infinity);
});

test('what was seen before the present trust began proves nothing', async () => {
  const world = new OrphanWorld();
  await world.look();
  world.clock.advance(GRACE_MS);
  world.trustedSinceMs = world.clock.monotonicMs() - 1;

  expect(await world.looksUntilDeleted()).toBe(2);
});

test('nor do Machines without a VM, and accounts, that were seen before it', async () => {
  const world = new OrphanWorld();
  world.suspects = ['uid'];
  await world.pass();
  expect(world.missingVMs.has('uid')).toBe(true);

  world.clock.advance(1_000);
  world.trustedSinceMs = world.clock.monotonicMs() - 1;
  await world.pass();

  expect(world.missingVMs.has('uid')).toBe(false);
  expect(world.blindSinceMs).toBe(world.trustedSinceMs);
});

test('while VMs are being deleted, it is said that they are waited for', async () => {
  const world = new OrphanWorld();
  world.provider.hangs = true;
  await world.pass();
  expect(world.waitingFor).toBe('the next check of the provider');
  world.clock.advance(GRACE_MS);
  await world.pass();
  world.clock.advance(GRACE_MS);
  await world.pass();

  expect(world.waitingFor).toBe('VMs without a Machine to be deleted');
});

describe('the next look', () => {
  const vanished = machine();
  const note = noteOfForcedRemoval(machine((m) => void (m.spec.providerID = VM.providerID)));
  test.each<{ what: string; change: (world: OrphanWorld) => void; afterMs: number }>([
    { what: 'nothing was found', change: () => undefined, afterMs: PERIOD_MS },
    { what: 'a VM has no Machine', change: ({ provider }) => void (provider.listed = [VM]), afterMs: GRACE_MS },
    { what: 'a Machine has no VM', change: (world) => void (world.suspects = ['uid']), afterMs: GRACE_MS },
    { what: 'a Machine has vanished', change: ({ removed }) => void removed.record(vanished), afterMs: GRACE_MS },
    {
      what: 'a Machine vanishes while its VM is being deleted',
      change: ({ removed }) => {
        removed.deletingVM(vanished.metadata.uid);
        removed.record(vanished);
      },
      afterMs: GRACE_MS,
    },
    {
      what: 'a class that is deleted waits for its last VM',
      change: ({ oneClass: { metadata } }) =>
        void Object.assign(metadata, { deletionTimestamp: 'now', finalizers: [MACHINE_FINALIZER] }),
      afterMs: GRACE_MS,
    },
    {
      what: 'a class that is deleted has Machines',
      change(world) {
        world.users = [vanished];
        Object.assign(world.oneClass.metadata, { deletionTimestamp: 'now', finalizers: [MACHINE_FINALIZER] });
      },
      afterMs: PERIOD_MS,
    },
    { what: 'an account is doubted', change: ({ blindAccounts }) => void (blindAccounts.size = 1), afterMs: GRACE_MS },
    {
      what: 'the VM of a Machine that was let go by force is not listed',
      change(world) {
        Object.assign(world.oneClass.metadata, { annotations: note });
        // Another one of its name is being made, so that nothing else is left to do for the note.
        world.namesakes = ['another'];
      },
      afterMs: GRACE_MS,
    },
    { what: 'a class cannot be listed', change: ({ provider }) => void (provider.listed = FAILURE), afterMs: 60_000 },
    {
      what: 'the clusters cannot be reached',
      change: (world) => void (world.trustedSinceMs = Infinity),
      afterMs: 5_000,
    },
  ])('is due after $afterMs ms when $what, and not before', async ({ change, afterMs }) => {
    const world = new OrphanWorld();
    world.provider.listed = [];
    change(world);

    expect(await world.pass()).toBe(afterMs);

    const { lists } = world.provider;
    world.clock.advance(1_000);
    await world.pass();
    expect(world.provider.lists).toBe(lists);
  });
});

test.each<{ what: string; listed: readonly ListedMachine[] | Error }>([
  { what: 'a VM has no Machine', listed: [VM] },
  { what: 'a class cannot be listed', listed: FAILURE },
])('the next look is never later than the period, also when $what', async ({ listed }) => {
  const world = new OrphanWorld(false, { periodMs: 10_000 });
  world.provider.listed = listed;

  expect(await world.pass()).toBe(10_000);
});

test('a Machine that has vanished counts again where one of its two classes could not be listed', async () => {
  const world = new OrphanWorld();
  const other = new Provider();
  other.listed = FAILURE;
  world.provider.listed = [];
  world.otherProviders.set('class-2', other);
  world.classes.push(machineClass((c) => void (c.metadata.name = 'class-2')));
  world.removed.record(
    machine((m) => void Object.assign(m.metadata.annotations, { 'machine.sapcloud.io/vm-class': 'class-2' })),
  );
  await world.look();

  expect(world.removed.missed).toHaveLength(1);
});

test('a Machine that has vanished counts again after a look that did not come to its end', async () => {
  const world = new OrphanWorld();
  world.removed.record(machine());
  world.examineFailure = new Error('took too long');
  await world.look();
  world.clock.advance(GRACE_MS);
  world.examineFailure = undefined;

  expect(await world.looksUntilDeleted()).toBe(3);
});

test('the next look is due a period after the last, however long the process runs', async () => {
  const world = new OrphanWorld();
  world.provider.listed = [];
  world.clock.advance(10 * PERIOD_MS);
  await world.pass();
  world.clock.advance(PERIOD_MS - 1);

  expect([await world.pass(), world.provider.lists]).toEqual([1, 1]);
});

test('a look that is to be soon is one grace after the last, however often it is asked for', async () => {
  const world = new OrphanWorld();
  await world.pass();
  world.clock.advance(1_000);
  world.hasten();

  expect([await world.pass(), world.provider.lists]).toEqual([GRACE_MS - 1_000, 1]);
  world.clock.advance(GRACE_MS - 1_000);
  world.hasten();
  await world.pass();
  world.hasten();
  expect(await world.pass()).toBe(GRACE_MS);
  expect(world.provider.lists).toBe(2);
});

describe('a look that is asked for during another one', () => {
  test.each<{ how: string; ask: (world: OrphanWorld) => void; afterMs: number }>([
    { how: 'soon', ask: (world) => world.hasten(), afterMs: GRACE_MS - 2_000 },
    { how: 'now', ask: (world) => world.hurry(), afterMs: 0 },
  ])('is not lost: $how', async ({ ask, afterMs }) => {
    const world = new OrphanWorld();
    world.provider.listed = [];
    world.provider.beforeList = () => {
      if (world.provider.lists > 1) return;
      world.clock.advance(1_000);
      ask(world);
      world.clock.advance(1_000);
    };

    expect(await world.pass()).toBe(afterMs);
    world.clock.advance(afterMs);
    expect([await world.pass(), world.provider.lists]).toEqual([PERIOD_MS, 2]);
  });

  test('nor is one that failed itself', async () => {
    const world = new OrphanWorld();
    world.dropFailure = new Error('no notes');
    await expect(world.pass()).rejects.toThrow('no notes');
    world.dropFailure = undefined;
    await world.pass();

    expect(world.provider.lists).toBe(2);
  });
});

test('a look fails with the API server when notes cannot be dropped', async () => {
  const world = new OrphanWorld();
  world.dropFailure = new Error('no notes');

  await expect(world.pass()).rejects.toThrow('no notes');
});

test('the next look is due soon while what a forced removal has left is being deleted', async () => {
  const world = new OrphanWorld();
  const former = machine((m) => void (m.spec.providerID = VM.providerID));
  Object.assign(world.oneClass.metadata, { annotations: noteOfForcedRemoval(former) });
  world.provider.listed = [];
  world.provider.hangs = true;
  for (let looks = 0; looks < 3; looks++) {
    expect(await world.pass()).toBe(GRACE_MS);
    world.clock.advance(GRACE_MS);
  }
});

test('a VM that one look in between did not show is proved from the beginning', async () => {
  const world = new OrphanWorld();
  await world.look();
  world.clock.advance(GRACE_MS);
  world.provider.listed = [];
  await world.look();
  world.clock.advance(GRACE_MS);
  world.provider.listed = [VM];

  expect(await world.looksUntilDeleted()).toBe(2);
});

describe('a look that does not come to its end counts all the same', () => {
  const cut = async (world: OrphanWorld): Promise<void> => {
    world.examineFailure = new Error('took too long');
    await world.look();
    world.examineFailure = undefined;
    world.clock.advance(GRACE_MS);
  };

  test.each<{ what: string; change: (world: OrphanWorld) => void; looks: number }>([
    { what: 'did not show it', change: ({ provider }) => void (provider.listed = []), looks: 2 },
    { what: 'showed its Machine', change: (world) => void (world.machines = [machine()]), looks: 2 },
    { what: 'showed the same', change: () => undefined, looks: 1 },
  ])('for a VM without a Machine, which is deleted in look $looks after one that $what', async ({ change, looks }) => {
    const world = new OrphanWorld();
    await world.look();
    world.clock.advance(GRACE_MS);
    change(world);
    await cut(world);
    world.provider.listed = [VM];
    world.machines = [];

    expect(await world.looksUntilDeleted()).toBe(looks);
  });

  test.each([
    { listed: [VM], isSuspect: false },
    { listed: [], isSuspect: true },
  ])('for a Machine without a VM: $isSuspect is whether it is under suspicion still', async ({ listed, isSuspect }) => {
    const world = new OrphanWorld();
    const { uid } = machine().metadata;
    world.machines = [machine((m) => void (m.spec.providerID = VM.providerID))];
    world.suspects = [uid];
    world.provider.listed = [];
    await world.look();
    world.provider.listed = listed;
    await cut(world);

    expect(world.missingVMs.has(uid)).toBe(isSuspect);
  });
});

test('a Machine whose VM is shown again is under suspicion no more', async () => {
  const world = new OrphanWorld();
  world.suspects = ['uid-1', 'uid-2'];
  await world.look();
  world.suspects = ['uid-2'];
  await world.look();

  expect(world.missingVMs.size).toBe(1);
});

test('Machines are compared with the lists as they were before these', async () => {
  const world = new OrphanWorld();
  await world.look();
  await world.look();

  expect(world.settled).toEqual(['settled at look 1', 'settled at look 2']);
});

test('nothing is asked of the provider while it cannot be trusted what is seen', async () => {
  const world = new OrphanWorld();
  world.trustedSinceMs = world.clock.monotonicMs();

  await world.look();

  expect(world.provider.lists).toBe(0);
});

test.each([
  { what: 'cannot be listed', listed: FAILURE },
  { what: 'lists VMs of another namespace', listed: [{ ...VM, machineNamespace: 'another' }] },
])('a class that $what is told of once, and again when it was deleted meanwhile', async ({ listed }) => {
  const world = new OrphanWorld();
  world.provider.listed = listed;
  await world.look();
  await world.look();
  expect(world.warnings).toHaveLength(1);

  world.classes.pop();
  await world.look();
  world.classes.push(world.oneClass);
  await world.look();

  expect(world.warnings).toHaveLength(2);
});
