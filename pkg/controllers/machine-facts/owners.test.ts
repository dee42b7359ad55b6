import { expect, test } from '@jest/globals';

import { machine, machineSet } from '../../../test/builders.ts';
import { Store } from '../../kube/cache/store.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { hasNoDeployment } from './owners.ts';

const by = (kind: string, apiVersion = 'machine.sapcloud.io/v1alpha1') => [
  { apiVersion, kind, name: 'owner', uid: 'owner', controller: true },
];

test.each([
  { title: 'has no owner', owned: undefined, set: undefined, want: true },
  { title: 'is of a set without owner', owned: by('MachineSet'), set: { owned: undefined, uid: 'owner' }, want: true },
  {
    title: 'is of a set of another kind of owner',
    owned: by('MachineSet'),
    set: { owned: by('Worker', 'example.com/v1'), uid: 'owner' },
    want: true,
  },
  {
    title: 'is of a set of a MachineDeployment',
    owned: by('MachineSet'),
    set: { owned: by('MachineDeployment'), uid: 'owner' },
    want: false,
  },
  { title: 'is of a set that was not seen', owned: by('MachineSet'), set: undefined, want: false },
  {
    title: 'is of a set whose name another one has',
    owned: by('MachineSet'),
    set: { owned: undefined, uid: 'other' },
    want: false,
  },
  { title: 'is of a MachineDeployment itself', owned: by('MachineDeployment'), set: undefined, want: false },
])('a Machine that $title has no MachineDeployment: $want', ({ owned, set, want }) => {
  const sets = new Store<MachineSet>({});
  if (set !== undefined) {
    const { owned: ownerReferences, uid } = set;
    sets.put(machineSet((s) => void Object.assign(s.metadata, { name: 'owner', uid, ownerReferences })));
  }
  const its = machine((m) => void Object.assign(m.metadata, { ownerReferences: owned }));

  expect(hasNoDeployment(its, { sets })).toBe(want);
});

test('nothing is known of the owners of a Machine whose sets this process cannot read', () => {
  const its = machine((m) => void Object.assign(m.metadata, { ownerReferences: by('MachineSet') }));

  expect(hasNoDeployment(its, { sets: undefined })).toBe(false);
});
