import { expect, test } from '@jest/globals';

import { REVISION_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import { machine, machineSet, type BuiltMachineSet } from '../../../../test/builders.ts';
import { setsToForget } from './cleanup.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';

interface OldSet {
  readonly set: MachineSet;
  readonly machines: readonly Machine[];
}

const empty = (name: string, day: number, change?: (s: BuiltMachineSet) => void): OldSet => ({
  set: machineSet((s) => {
    s.metadata.name = name;
    s.metadata.creationTimestamp = `2026-01-0${day}T00:00:00Z`;
    s.spec.replicas = 0;
    s.status.replicas = 0;
    change?.(s);
  }),
  machines: [],
});

const [a, b, c] = [empty('a', 1), empty('b', 2), empty('c', 3)];

test.each([
  { title: 'without a limit keeps all', sets: [a, b, c], limit: undefined, want: [] },
  { title: 'forgets the oldest beyond the limit', sets: [c, b, a], limit: 1, want: ['a', 'b'] },
  { title: 'forgets all at 0', sets: [a, b, c], limit: 0, want: ['a', 'b', 'c'] },
  {
    title: 'goes by revision among sets of the same second',
    sets: [
      empty('a', 1, (s) => (s.metadata.annotations[REVISION_ANNOTATION] = '10')),
      empty('b', 1, (s) => (s.metadata.annotations[REVISION_ANNOTATION] = '9')),
    ],
    limit: 1,
    want: ['b'],
  },
  { title: 'keeps a set with a machine', sets: [{ ...a, machines: [machine()] }, b, c], limit: 1, want: ['b'] },
  {
    title: 'keeps a set that wants machines',
    sets: [empty('a', 1, (s) => (s.spec.replicas = 1)), b, c],
    limit: 2,
    want: [],
  },
  {
    title: 'keeps a set that has not been observed',
    sets: [empty('a', 1, (s) => (s.metadata.generation = 2)), b, c],
    limit: 2,
    want: [],
  },
  {
    title: 'does not count a set that is on its way out',
    sets: [empty('a', 1, (s) => (s.metadata.deletionTimestamp = '2026-01-04T00:00:00Z')), b, c],
    limit: 2,
    want: [],
  },
])('the history $title', ({ sets, limit, want }) => {
  const machinesOf = (of: MachineSet) => sets.find(({ set }) => set === of)?.machines ?? [];
  const oldSets = sets.map(({ set }) => set);

  expect(setsToForget({ oldSets, machinesOf }, limit).map(({ metadata }) => metadata.name)).toEqual(want);
});
