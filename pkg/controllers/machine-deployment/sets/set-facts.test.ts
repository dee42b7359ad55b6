import { expect, test } from '@jest/globals';

import {
  LAST_SCALER_CHANGE_ANNOTATION,
  MARKED_FOR_DELETION_TIME_ANNOTATION,
  PRESERVE_ANNOTATION,
  PRIORITY_ANNOTATION,
  UPDATE_RESULT_LABEL,
  UPGRADE_INDEX_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import { machine, machineSet, type BuiltMachine } from '../../../../test/builders.ts';
import { factsOf } from './set-facts.ts';

const NOW = Date.parse('2026-01-02T00:00:00Z');
const PAST = '2026-01-01T00:00:00Z';
const NOBODY: ReadonlySet<string> = new Set();

type Trait =
  | 'well'
  | 'well, just updated'
  | 'ill, just updated'
  | 'failed, preserved'
  | 'failed, to be preserved'
  | 'ill'
  | 'well, preferred'
  | 'going'
  | 'well, marked';

function machineOf(trait: Trait, i: number): BuiltMachine {
  return machine((m) => {
    m.metadata.name = `m-${i}`;
    if (trait.startsWith('ill')) m.status.currentStatus.phase = 'Unknown';
    if (trait === 'failed, preserved') {
      m.status.currentStatus = { phase: 'Failed', preserveExpiryTime: '2026-01-03T00:00:00Z' };
    }
    if (trait === 'failed, to be preserved') {
      m.status.currentStatus = { phase: 'Failed' };
      m.metadata.annotations[PRESERVE_ANNOTATION] = 'when-failed';
    }
    if (trait.endsWith('just updated')) m.metadata.labels[UPDATE_RESULT_LABEL] = 'successful';
    if (trait === 'going') m.metadata.deletionTimestamp = PAST;
    if (trait === 'well, preferred') m.metadata.annotations[PRIORITY_ANNOTATION] = '2';
    if (trait === 'well, marked') {
      m.metadata.annotations[PRIORITY_ANNOTATION] = '1';
      m.metadata.annotations[MARKED_FOR_DELETION_TIME_ANNOTATION] = PAST;
    }
  });
}

test.each<{ traits: Trait[]; size: number; available: number; free: number }>([
  { traits: ['well', 'well', 'well'], size: 3, available: 3, free: 0 },
  { traits: ['well', 'well'], size: 3, available: 2, free: 1 },
  { traits: ['well', 'ill', 'ill'], size: 3, available: 1, free: 2 },
  { traits: ['well, preferred', 'ill', 'well'], size: 3, available: 2, free: 0 },
  { traits: ['well', 'well', 'ill'], size: 2, available: 2, free: 0 },
  { traits: ['well, preferred', 'ill', 'well'], size: 2, available: 1, free: 1 },
  { traits: ['well', 'going'], size: 2, available: 1, free: 1 },
  { traits: ['well', 'well, marked'], size: 2, available: 1, free: 1 },
  { traits: ['well', 'well, marked'], size: 3, available: 1, free: 2 },
  { traits: ['well, just updated', 'well, just updated'], size: 1, available: 1, free: 0 },
  { traits: ['well, just updated', 'well, just updated', 'well'], size: 0, available: 0, free: 0 },
  { traits: ['ill, just updated', 'ill'], size: 2, available: 0, free: 1 },
])('of $size machines $traits, $available are available and $free cost nothing', ({ traits, size, ...want }) => {
  const set = machineSet((s) => {
    s.spec.replicas = size;
    s.metadata.annotations[LAST_SCALER_CHANGE_ANNOTATION] = PAST;
  });

  const { available, free, existing } = factsOf(set, traits.map(machineOf), { isReplaced: false, named: NOBODY }, NOW);

  expect({ available, free, existing }).toEqual({ ...want, existing: traits.length });
});

test.each<{ traits: Trait[]; size: number; missing: number }>([
  { traits: ['well', 'ill'], size: 3, missing: 1 },
  { traits: ['well', 'going'], size: 2, missing: 1 },
  { traits: ['well', 'ill', 'ill'], size: 2, missing: 0 },
])('of machines that are $traits, a set of size $size lacks $missing', ({ traits, size, missing }) => {
  const set = machineSet((s) => void (s.spec.replicas = size));

  expect(factsOf(set, traits.map(machineOf), { isReplaced: true, named: NOBODY }, NOW).missing).toBe(missing);
});

test.each<{
  title: string;
  traits: Trait[];
  size: number;
  preservedFailed: number;
  free: number;
  freePreserved?: number;
}>([
  {
    title: 'is missed while available ones go first',
    traits: ['failed, preserved', 'well'],
    size: 2,
    preservedFailed: 1,
    free: 0,
  },
  {
    title: 'in a moment is missed while available ones go first',
    traits: ['failed, to be preserved', 'well'],
    size: 2,
    preservedFailed: 1,
    free: 0,
  },
  {
    title: 'in a moment stays when its set has one too many',
    traits: ['failed, to be preserved', 'well', 'well'],
    size: 2,
    preservedFailed: 1,
    free: 0,
  },
  {
    title: 'in a moment costs nothing in a set without any, but its inspection',
    traits: ['failed, to be preserved', 'ill'],
    size: 2,
    preservedFailed: 0,
    free: 1,
    freePreserved: 1,
  },
  {
    title: 'costs nothing in a set without any, but its inspection',
    traits: ['failed, preserved', 'ill'],
    size: 2,
    preservedFailed: 0,
    free: 1,
    freePreserved: 1,
  },
  {
    title: 'that is about to go is not missed',
    traits: ['failed, preserved', 'well'],
    size: 0,
    preservedFailed: 0,
    free: 0,
  },
])('a failed machine that is preserved $title', ({ traits, size, preservedFailed, free, freePreserved = 0 }) => {
  const set = machineSet((s) => void (s.spec.replicas = size));

  expect(factsOf(set, traits.map(machineOf), { isReplaced: false, named: NOBODY }, NOW)).toMatchObject({
    preservedFailed,
    free,
    freePreserved,
  });
});

test.each([
  { isReplaced: true, free: 0 },
  { isReplaced: false, free: 1 },
])(
  'a set that is replaced ($isReplaced) gives up the smaller upgrade index first: $free cost nothing',
  ({ isReplaced, free }) => {
    const set = machineSet((s) => void (s.spec.replicas = 2));
    const indexed = machine((m) => void (m.metadata.annotations[UPGRADE_INDEX_ANNOTATION] = '1'));

    expect(factsOf(set, [machineOf('ill', 0), indexed], { isReplaced, named: NOBODY }, NOW).free).toBe(free);
  },
);

test.each<{ title: string; traits: Trait[]; named: string[]; free: number }>([
  { title: 'works', traits: ['well', 'ill', 'well'], named: ['m-0'], free: 1 },
  { title: 'works and is marked', traits: ['well, preferred', 'ill', 'well'], named: ['m-0'], free: 1 },
  { title: 'does not work', traits: ['ill', 'ill', 'well'], named: ['m-0'], free: 1 },
])('what costs nothing besides a named machine that $title: $free', ({ traits, named, free }) => {
  const set = machineSet((s) => void (s.spec.replicas = traits.length));

  expect(factsOf(set, traits.map(machineOf), { isReplaced: false, named: new Set(named) }, NOW)).toMatchObject({
    named: 1,
    free,
  });
});
