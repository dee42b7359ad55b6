import { describe, expect, test } from '@jest/globals';

import { machine, machineClass } from '../../../../test/builders.ts';
import type { ListedMachine } from '../../../driver/driver.ts';
import { anotherMachine, FAILURE, GRACE_MS, OrphanWorld, Provider, VM } from '../../../../test/fakes/orphan-world.ts';

const VM_ANSWER = { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] };

test.each([
  { what: 'Machines cannot be read', machines: FAILURE, listed: [VM], more: 3 },
  { what: 'its class cannot be listed', machines: [], listed: FAILURE, more: 3 },
  { what: 'nothing fails', machines: [], listed: [VM], more: 2 },
])('the VM of a Machine that vanished counts as owned in one whole look: $what', async (row) => {
  const { machines, listed, more } = row;
  const world = new OrphanWorld();
  expect(world.removed.record(machine())).toBe('unexpectedly');
  world.machines = machines;
  world.provider.listed = listed;

  await world.look();
  world.clock.advance(GRACE_MS);
  world.machines = [];
  world.provider.listed = [VM];

  expect(await world.looksUntilDeleted()).toBe(more);
});

/** A Machine vanished, and another one, which has no VM yet, took its name. */
function succeeded(): OrphanWorld {
  const world = new OrphanWorld();
  world.removed.record(machine((o) => void (o.spec.providerID = 'sim:///before')));
  world.machines = [
    machine((o) => {
      o.metadata.uid = 'uid-of-another';
      o.spec.providerID = '';
      o.status.currentStatus.phase = '';
    }),
  ];
  return world;
}

test('a Machine that took the name of one that vanished keeps what is being made for it', async () => {
  const world = succeeded();

  await world.look();

  expect(world.ownerless.list()).toEqual([]);
});

test('a Machine that took the name of one that vanished keeps its VM, also while that of the other is still there', async () => {
  const world = succeeded();
  world.provider.listed = [VM, { ...VM, providerID: 'sim:///before' }];

  await world.look();

  expect(world.ownerless.list()).toEqual([]);
  expect(world.events).toEqual([]);
});

describe('a provider that lists the VM of a Machine under another id', () => {
  const known = machine((o) => void (o.spec.providerID = 'sim:///before'));

  test('is told so, and the VM is neither deleted nor counted', async () => {
    const world = new OrphanWorld();
    world.machines = [known];

    expect(await world.looksUntilDeleted()).toBe(Infinity);

    expect(new Set(world.events)).toEqual(new Set(['ProviderIDMismatch']));
    expect(world.ownerless.list()).toEqual([]);
  });

  test('is logged once, with the number of VMs, until a list shows the right id', async () => {
    const world = new OrphanWorld();
    world.machines = [known, machine((o) => void Object.assign(o, anotherMachine('m-2', 'sim:///before-2')))];
    const second = { providerID: 'sim:///m-2', machineName: 'm-2', machineUID: 'uid-of-machine-m-2' };
    world.provider.listed = [VM, second];
    await world.look();
    world.provider.listed = [second, VM];
    await world.look();
    expect(new Set(world.messages).size).toBe(1);

    const once = { class: 'default/class-1', vms: 2, machine: 'm-1', providerID: VM.providerID };
    expect(world.warned).toEqual([once]);

    world.provider.listed = FAILURE;
    await world.look();
    world.provider.listed = [VM, second];
    await world.look();
    expect(world.warned.filter((fields) => 'machine' in fields)).toEqual([once]);

    world.provider.listed = [{ ...VM, providerID: 'sim:///before' }];
    await world.look();
    world.provider.listed = [VM];
    await world.look();
    expect(world.warned.at(-1)).toEqual({ ...once, vms: 1 });
  });

  const twins: ListedMachine[] = [VM, { ...VM, providerID: 'sim:///before' }];
  test.each([
    { what: 'the other one', answer: 'sim:///before', deleted: 2 },
    { what: 'this one', answer: 'sim:///m-1', deleted: Infinity },
  ])('beside the one that the Machine knows: GetMachineStatus decides, and says $what', async ({ answer, deleted }) => {
    const world = new OrphanWorld();
    world.machines = [known];
    world.namesake = known;
    world.provider.listed = twins;
    world.provider.getStatus = () => Promise.resolve({ providerID: answer, nodeName: 'm-1', addresses: [] });

    expect(await world.looksUntilDeleted()).toBe(deleted);
  });
});

/** class-1 lists VM with the ID `listed`, and class-2 that of its Machine with the ID `own`. */
function twoClasses(own: string, listed = VM.providerID): { world: OrphanWorld; other: Provider } {
  const known = machine((o) => {
    o.spec = { class: { kind: 'MachineClass', name: 'class-2' }, providerID: own };
  });
  const world = new OrphanWorld();
  const other = new Provider();
  world.provider.listed = [{ ...VM, providerID: listed }];
  other.listed = [{ ...VM, providerID: own }];
  other.vms.set('m-1', { providerID: own, nodeName: 'm-1', addresses: [] });
  world.otherProviders.set('class-2', other);
  world.classes.push(machineClass((c) => void (c.metadata.name = 'class-2')));
  world.machines = [known];
  world.namesake = known;
  return { world, other };
}

const DRAWN = 'i-0123456789abcdef0';

test.each([
  { what: 'in another case', own: 'sim:///WestEurope/m-1', listed: 'sim:///westeurope/m-1' },
  { what: 'in another place, with its UID', own: `sim:///a/${DRAWN}`, listed: `sim:///b/${DRAWN}` },
])('the VM of a Machine is not deleted when another class lists its id $what', async ({ own, listed }) => {
  const { world } = twoClasses(own, listed);
  // What it says does not decide.
  world.namesake = undefined;

  expect(await world.looksUntilDeleted()).toBe(Infinity);
  expect(new Set(world.events)).toEqual(new Set(['ProviderIDMismatch']));
  expect(world.messages.at(-1)).toContain(`both IDs may be of one VM, such as ${listed} of Machine m-1.`);
});

describe('a second VM of a Machine that was made anew with another class', () => {
  test.each([
    { own: 'sim-2:///m-1', listed: VM.providerID, uid: VM.machineUID },
    { own: 'sim:///other/i-00000001', listed: 'sim:///account/i-00000001', uid: VM.machineUID },
    { own: `sim:///other/${DRAWN}`, listed: `sim:///account/${DRAWN}`, uid: 'before' },
    { own: `sim:///other/${DRAWN}`, listed: `sim:///account/${DRAWN}`, uid: undefined },
  ])('$listed is deleted when the class of the Machine lists and confirms $own: UID $uid', async (row) => {
    const { world, other } = twoClasses(row.own, row.listed);
    world.provider.listed = [{ ...VM, providerID: row.listed, machineUID: row.uid }];

    expect(await world.looksUntilDeleted()).toBe(2);
    expect([other.deleted, world.provider.calls]).toEqual([[], []]);
  });

  test.each<{ what: string; change: (given: { world: OrphanWorld; other: Provider }) => void }>([
    { what: 'that class does not list its own', change: ({ other }) => void (other.listed = []) },
    { what: 'that class cannot be listed', change: ({ other }) => void (other.listed = FAILURE) },
    { what: 'that class says that it is the one', change: ({ other }) => other.vms.set('m-1', { ...VM_ANSWER }) },
    {
      what: 'two drivers may show one VM under two ids',
      change: ({ other }) => void Object.assign(other, { provider: 'sim-2' }),
    },
  ])('is left alone when $what', async ({ change }) => {
    const given = twoClasses('sim-2:///m-1');
    change(given);

    expect(await given.world.looksUntilDeleted()).toBe(Infinity);
    expect(given.other.deleted).toEqual([]);
  });
});
