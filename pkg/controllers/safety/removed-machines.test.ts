import { describe, expect, test } from '@jest/globals';

import { machine } from '../../../test/builders.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { ListedMachine } from '../../driver/driver.ts';
import { RemovedMachines } from './removed-machines.ts';
import { OwnerlessVMs } from './ownerless-vms.ts';

test('a Machine leaves in order when its VM was deleted first', () => {
  const removed = new RemovedMachines();
  removed.deletedVM('uid-of-machine-m-1');

  expect(removed.record(machine())).toBe('in-order');
  expect(removed.missed).toEqual([]);
});

test('a Machine of which the driver finds no VM is missed unless that is believed', () => {
  const removed = new RemovedMachines();
  removed.deletedVM('uid-of-machine-m-1');
  removed.judgedVM('uid-of-machine-m-1', false);
  expect(removed.record(machine())).toBe('unexpectedly');

  removed.judgedVM('uid-of-machine-m-1', true);
  expect(removed.record(machine())).toBe('in-order');
});

test('a Machine that vanishes otherwise is missed until a look has counted it', () => {
  const removed = new RemovedMachines();
  const vanished = machine();

  expect(removed.record(vanished)).toBe('unexpectedly');
  expect(removed.missed).toEqual([vanished]);
  const later = machine((m) => void (m.metadata.uid = 'later'));
  removed.record(later);
  removed.counted([vanished]);

  expect(removed.missed).toEqual([later]);
});

describe('of a class', () => {
  const KEY = 'default/class-1';
  const { uid } = machine().metadata;
  test.each<{ what: string; happen: (removed: RemovedMachines) => void; hasLost: boolean }>([
    { what: 'a Machine vanishes', happen: (removed) => removed.record(machine()), hasLost: true },
    {
      what: 'a Machine vanishes while its VM is being deleted, which fails then',
      happen(removed) {
        removed.deletingVM(uid);
        removed.record(machine());
        removed.gaveUpVM(uid);
      },
      hasLost: true,
    },
    {
      what: 'a Machine goes after its VM',
      happen(removed) {
        removed.deletedVM(uid);
        removed.record(machine());
      },
      hasLost: false,
    },
  ])('$what: a VM may be left behind, $hasLost', ({ happen, hasLost }) => {
    const removed = new RemovedMachines();
    happen(removed);
    removed.counted(removed.missed);

    expect([removed.hasLost(KEY), removed.hasLost('default/class-2')]).toEqual([hasLost, false]);
  });
});

test.each([
  { how: 'and it was deleted', departure: 'in-order', missed: 0 },
  { how: 'and the call failed', departure: 'unexpectedly', missed: 1 },
] as const)(
  'of a Machine that vanishes while its VM is being deleted the end of the call decides: $how',
  ({ departure, missed }) => {
    const removed = new RemovedMachines();
    const ended: unknown[] = [];
    removed.onLateEnd((...end) => ended.push(end));
    const vanished = machine();
    const { uid } = vanished.metadata;

    removed.deletingVM(uid);
    expect(removed.record(vanished)).toBe('deleting');
    expect([removed.missed, removed.deleting(), removed.deleting()]).toEqual([[], [vanished], [vanished]]);
    expect(ended).toEqual([]);

    if (departure === 'in-order') removed.deletedVM(uid);
    else removed.gaveUpVM(uid);
    expect(ended).toEqual([[vanished, departure]]);
    expect(removed.missed).toHaveLength(missed);
    expect(removed.deleting()).toEqual([]);
  },
);

test('a call that fails is nothing to a Machine that exists', () => {
  const removed = new RemovedMachines();
  const ended: unknown[] = [];
  removed.onLateEnd((...end) => ended.push(end));

  removed.deletingVM('uid-of-machine-m-1');
  removed.gaveUpVM('uid-of-machine-m-1');

  expect(ended).toEqual([]);
  expect(removed.missed).toEqual([]);
  expect(removed.record(machine())).toBe('unexpectedly');
});

test.each([
  {
    what: 'deletes its Node',
    phase: 'Terminating',
    description: 'Initiate node object deletion',
    providerID: 'sim:///m-1',
  },
  { what: 'never had a VM', phase: 'CrashLoopBackOff', description: '', providerID: '' },
] as const)('a deleted Machine that $what leaves in order', ({ phase, description, providerID }) => {
  const leaving = machine((o) => {
    o.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    o.status.currentStatus.phase = phase;
    o.status.lastOperation.description = description;
    o.spec.providerID = providerID;
  });

  expect(new RemovedMachines().record(leaving)).toBe('in-order');
});

test('a VM of which several lists tell is one', () => {
  const vms = new OwnerlessVMs();
  vms.replace([
    { providerID: 'a', machineName: 'm-1' },
    { providerID: 'a', machineName: 'm-1' },
    { providerID: 'b', machineName: 'm-2' },
  ]);
  vms.remove('b');

  expect(vms.list()).toEqual([{ providerID: 'a', machineName: 'm-1' }]);
});

test('a Machine that is taken away while its VM may be being made is missed', () => {
  const young = machine((m) => {
    m.spec.providerID = '';
    m.status.currentStatus.phase = '';
  });

  expect(new RemovedMachines().record(young)).toBe('unexpectedly');
  const going = { ...young, metadata: { ...young.metadata, deletionTimestamp: 'now' } };
  expect(new RemovedMachines().record(going)).toBe('in-order');
});

describe('a VM that comes after its Machine', () => {
  const late = (machineUID: string | undefined): ListedMachine => ({ providerID: 'x', machineName: 'm-1', machineUID });
  const going = machine((m) => void (m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z'));
  const { uid } = going.metadata;

  test.each<{ how: string; machine?: Machine; change?: (removed: RemovedMachines) => void; is: boolean }>([
    { how: 'whose VM was deleted first', change: (removed) => removed.deletedVM(uid), is: true },
    {
      how: 'whose Node is being deleted',
      machine: machine((m) => {
        m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
        m.status.currentStatus.phase = 'Terminating';
        m.status.lastOperation.description = 'Initiate node object deletion';
      }),
      is: true,
    },
    {
      how: 'nobody asked to delete, whose VM was deleted',
      machine: machine(),
      change: (removed) => removed.deletedVM(uid),
      is: false,
    },
    { how: 'whose finalizer somebody took away while it was being deleted', is: false },
    {
      how: 'whose creation was given up, and whose finalizer somebody took away',
      machine: machine((m) => {
        m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
        m.spec.providerID = '';
        m.status.currentStatus.phase = 'CrashLoopBackOff';
      }),
      is: false,
    },
  ])('is explained by a Machine $how: $is', ({ machine: gone = going, change, is }) => {
    const removed = new RemovedMachines();
    change?.(removed);
    removed.record(gone);

    expect([removed.isLate(late(uid)), removed.isLate(late(undefined))]).toEqual([is, is]);
    expect(removed.isLate(late('of another'))).toBe(false);
  });

  test.each([
    { how: 'and was deleted', end: 'deletedVM', is: true },
    { how: 'and was not', end: 'gaveUpVM', is: false },
  ] as const)('is explained by one that vanished while its VM was being deleted, $how: $is', ({ end, is }) => {
    const removed = new RemovedMachines();
    removed.deletingVM(uid);
    removed.record(going);
    removed[end](uid);

    expect(removed.isLate(late(uid))).toBe(is);
  });
});
