import { expect, test } from '@jest/globals';

import { machine } from '../../../test/builders.ts';
import { Departures } from './departures.ts';
import { OwnerlessVMs } from './ownerless-vms.ts';

test('a Machine leaves in order when its VM was deleted first', () => {
  const departures = new Departures();
  departures.deletedVM('uid-of-machine-m-1');

  expect(departures.left(machine())).toBe('in-order');
  expect(departures.takeMissed()).toEqual([]);
});

test('a Machine that vanishes otherwise is missed through one look', () => {
  const departures = new Departures();
  const vanished = machine();

  expect(departures.left(vanished)).toBe('unexpectedly');
  expect(departures.takeMissed()).toEqual([vanished]);
  expect(departures.takeMissed()).toEqual([]);

  departures.missAgain([vanished]);
  expect(departures.takeMissed()).toEqual([vanished]);
});

test.each([
  { how: 'and it was deleted', departure: 'in-order', missed: 0 },
  { how: 'and the call failed', departure: 'unexpectedly', missed: 1 },
] as const)(
  'of a Machine that vanishes while its VM is being deleted the end of the call decides: $how',
  ({ departure, missed }) => {
    const departures = new Departures();
    const ended: unknown[] = [];
    departures.onLateEnd((...end) => ended.push(end));
    const vanished = machine();
    const { uid } = vanished.metadata;

    departures.deletingVM(uid);
    expect(departures.left(vanished)).toBe('deleting');
    expect([departures.takeMissed(), departures.deleting(), departures.deleting()]).toEqual([
      [],
      [vanished],
      [vanished],
    ]);
    expect(ended).toEqual([]);

    if (departure === 'in-order') departures.deletedVM(uid);
    else departures.gaveUpVM(uid);
    expect(ended).toEqual([[vanished, departure]]);
    expect(departures.takeMissed()).toHaveLength(missed);
    expect([...departures.takeMissed(), ...departures.deleting()]).toEqual([]);
  },
);

test('a call that fails is nothing to a Machine that exists', () => {
  const departures = new Departures();
  const ended: unknown[] = [];
  departures.onLateEnd((...end) => ended.push(end));

  departures.deletingVM('uid-of-machine-m-1');
  departures.gaveUpVM('uid-of-machine-m-1');

  expect(ended).toEqual([]);
  expect(departures.takeMissed()).toEqual([]);
  expect(departures.left(machine())).toBe('unexpectedly');
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

  expect(new Departures().left(leaving)).toBe('in-order');
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

  expect(new Departures().left(young)).toBe('unexpectedly');
  const going = { ...young, metadata: { ...young.metadata, deletionTimestamp: 'now' } };
  expect(new Departures().left(going)).toBe('in-order');
});
