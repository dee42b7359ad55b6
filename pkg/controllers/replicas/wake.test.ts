import { describe, expect, test } from '@jest/globals';

import { machine, machineSet, type BuiltMachineSet } from '../../../test/builders.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { cachedOwnerOf, ownersSelecting, priorityFor } from './wake.ts';

describe('an object without an owner could be adopted', () => {
  const labels = { pool: 'a' };
  const object = machine((m) => void (m.metadata.labels = { ...labels }));

  test.each<{ what: string; change: (s: BuiltMachineSet) => void; found: number }>([
    { what: 'by a set that selects it', change: (s) => void (s.spec.selector = { matchLabels: labels }), found: 1 },
    {
      what: 'by a set that selects it by an expression',
      change: (s) => void (s.spec.selector = { matchExpressions: [{ key: 'pool', operator: 'Exists' }] }),
      found: 1,
    },
    {
      what: 'by none of another namespace',
      change: (s) => {
        s.metadata.namespace = 'other';
        s.spec.selector = { matchLabels: labels };
      },
      found: 0,
    },
    {
      what: 'by none that selects others',
      change: (s) => void (s.spec.selector = { matchLabels: { pool: 'b' } }),
      found: 0,
    },
    { what: 'by none that selects everything', change: (s) => void (s.spec.selector = {}), found: 0 },
    {
      what: 'by none whose selector is invalid',
      change: (s) => void (s.spec.selector = { matchExpressions: [{ key: 'pool', operator: 'Odd' as 'In' }] }),
      found: 0,
    },
  ])('$what', ({ change, found }) => {
    expect(ownersSelecting(new MemoryInformer([machineSet(change)]), object)).toHaveLength(found);
  });
});

describe('the owner of an object', () => {
  const set = machineSet();
  const ownedBy = (owner: BuiltMachineSet, kind = 'MachineSet', apiVersion = API_VERSION) =>
    machine((m) => void (m.metadata.ownerReferences = [controllerReference(owner, apiVersion, kind)]));
  const before = machineSet((s) => void (s.metadata.uid = 'uid of one before'));

  test.each([
    { what: 'is that of its reference', object: ownedBy(set), found: set },
    { what: 'is none of that name with another UID', object: ownedBy(before), found: undefined },
    { what: 'is none of another kind', object: ownedBy(set, 'ReplicaSet'), found: undefined },
    { what: 'is none of another API', object: ownedBy(set, 'MachineSet', 'example.com/v1'), found: undefined },
    { what: 'is none without a reference', object: machine(), found: undefined },
    { what: 'is none of nothing', object: undefined, found: undefined },
  ])('$what', ({ object, found }) => {
    expect(cachedOwnerOf(new MemoryInformer([set]), 'MachineSet', object)).toEqual(found);
  });
});

test.each([
  { hasSynced: true, isDeletion: false, want: 'normal' },
  { hasSynced: false, isDeletion: false, want: 'low' },
  { hasSynced: false, isDeletion: true, want: 'high' },
])('a change, deletion $isDeletion, of a cache that is filled, $hasSynced, is of $want priority', (row) => {
  expect(priorityFor(row, row.isDeletion)).toBe(row.want);
});
