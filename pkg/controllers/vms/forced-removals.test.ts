import { expect, test } from '@jest/globals';

import { machine, machineClass } from '../../../test/builders.ts';
import { forcedRemovalsOf, mayBeLeftBy, noteOfForcedRemoval } from './forced-removals.ts';

const PREFIX = 'forced-removal.safety.machine.sapcloud.io';
const noting = (annotations: Record<string, string>): ReturnType<typeof machineClass> =>
  machineClass((c) => void (c.metadata.annotations = { other: 'x', ...annotations }));
const VM = { providerID: 'sim:///m-1', machineName: 'm-1', machineUID: undefined };

test('a class notes of each Machine what finds its VM again', () => {
  const { uid } = machine().metadata;
  const made = noting(noteOfForcedRemoval(machine((m) => void (m.spec.providerID = 'sim:///m-1'))));

  expect(forcedRemovalsOf(made)).toEqual([
    { key: `${PREFIX}/${uid}`, machineUID: uid, machine: 'm-1', nodeName: 'm-1', providerID: 'sim:///m-1' },
  ]);
});

test('and that no provider ID is known', () => {
  const made = noting(noteOfForcedRemoval(machine((m) => delete m.spec.providerID)));

  expect(forcedRemovalsOf(made)).toMatchObject([{ machine: 'm-1', providerID: undefined }]);
});

test.each([
  { what: 'its provider ID', vm: { ...VM, machineName: 'other' }, is: true },
  { what: 'its name', vm: { ...VM, providerID: 'sim:///new' }, is: true },
  { what: 'its UID', vm: { providerID: 'sim:///x', machineName: 'x', machineUID: 'u-1' }, is: true },
  { what: 'nothing of it', vm: { providerID: 'sim:///x', machineName: 'x', machineUID: 'u-2' }, is: false },
])('a VM with $what may be left by it: $is', ({ vm, is }) => {
  const note = { key: '', machineUID: 'u-1', machine: 'm-1', nodeName: 'n-1', providerID: 'sim:///m-1' };

  expect(mayBeLeftBy(vm, note)).toBe(is);
});

test.each(['', 'true', '{', 'null', '{"machine":7}'])('a note that says %j may mean any VM', (text) => {
  const [removal] = forcedRemovalsOf(noting({ [`${PREFIX}/u-1`]: text }));

  expect(removal).toMatchObject({ machineUID: 'u-1', machine: undefined });
  expect(removal && mayBeLeftBy({ ...VM, machineName: 'x', providerID: 'y' }, removal)).toBe(true);
});
