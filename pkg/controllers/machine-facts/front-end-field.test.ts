import { expect, test } from '@jest/globals';

import { machine } from '../../../test/builders.ts';
import { frontEndField } from './front-end-field.ts';

test.each([
  { owner: { apiVersion: 'cluster.k8s.io/v1alpha1', kind: 'Machine', controller: true }, isTold: true },
  { owner: { apiVersion: 'cluster.k8s.io/v1alpha1', kind: 'Machine' }, isTold: false },
  { owner: { apiVersion: 'cluster.k8s.io/v1alpha1', kind: 'MachineSet', controller: true }, isTold: false },
  { owner: { apiVersion: 'machine.sapcloud.io/v1alpha1', kind: 'MachineSet', controller: true }, isTold: false },
  { owner: undefined, isTold: false },
])('a Machine of $owner is set by a field of its owner: $isTold', ({ owner, isTold }) => {
  const one = machine((m) => {
    if (owner !== undefined) m.metadata.ownerReferences = [{ ...owner, name: 'm-1', uid: 'u-1' }];
  });

  const want = 'spec.providerSpec.value.deletionPolicy of machines.cluster.k8s.io m-1';
  expect(frontEndField(one, 'deletionPolicy')).toBe(isTold ? want : undefined);
});

test.each([
  {
    field: 'deletionPolicy',
    kind: 'MachineSet',
    want: 'spec.machineSpec.providerSpec.value.deletionPolicy of machinepools.kaas.mirantis.com p',
  },
  {
    field: 'maintenance',
    kind: 'MachineSet',
    want: 'spec.providerSpec.value.maintenance of machines.cluster.k8s.io m-2',
  },
  { field: 'delete', kind: 'MachineSet', want: 'spec.providerSpec.value.delete of machines.cluster.k8s.io m-2' },
  { field: 'delete', kind: 'Other', want: undefined },
] as const)('a Machine of a pool, owned by a $kind, has $field set by $want', ({ field, kind, want }) => {
  const one = machine((m) => {
    m.metadata.name = 'm-2';
    m.metadata.labels = { 'kaas.mirantis.com/machinepool-name': 'p' };
    const owner = { apiVersion: 'machine.sapcloud.io/v1alpha1', kind, name: 's', uid: 'u', controller: true };
    m.metadata.ownerReferences = [owner];
  });

  expect(frontEndField(one, field)).toBe(want);
});
