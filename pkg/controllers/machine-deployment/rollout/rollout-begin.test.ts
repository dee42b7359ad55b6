import { expect, test } from '@jest/globals';

import { machineDeployment, machineSet } from '../../../../test/builders.ts';
import { SCALE_UP_DISABLED_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { canPause, isToBegin } from './rollout-begin.ts';
import { EMPTY_SET, type SetFacts } from '../sets/set-facts.ts';

type Size = readonly [size: number, existing: number];

interface Row {
  readonly title: string;
  readonly strategy?: 'RollingUpdate' | 'Recreate' | 'InPlaceUpdate';
  readonly now?: Size;
  readonly old: readonly Size[];
  /** Whether the first old set is kept from refilling. */
  readonly isStopped?: boolean;
  readonly isToBegin: boolean;
}

test.each<Row>([
  { title: 'without machines of another template', old: [[0, 0]], isToBegin: false },
  { title: 'before the new set exists', old: [[3, 3]], isToBegin: true },
  {
    title: 'before an earlier set has machines again, as after a rollback',
    now: [0, 0],
    old: [[3, 3]],
    isToBegin: true,
  },
  { title: 'when the new set should have machines', now: [1, 0], old: [[3, 3]], isToBegin: false },
  { title: 'when the new set has machines', now: [0, 1], old: [[3, 3]], isToBegin: false },
  {
    title: 'of a Recreate whose machines stay',
    strategy: 'Recreate',
    old: [
      [3, 3],
      [0, 1],
    ],
    isToBegin: true,
  },
  { title: 'of a Recreate whose machines go', strategy: 'Recreate', old: [[0, 3]], isToBegin: false },
  { title: 'of a RollingUpdate whose machines go', old: [[0, 3]], isToBegin: true },
  { title: 'in place before anything is done', strategy: 'InPlaceUpdate', now: [0, 0], old: [[3, 3]], isToBegin: true },
  {
    title: 'in place when old machines move on',
    strategy: 'InPlaceUpdate',
    now: [0, 0],
    old: [[3, 3]],
    isStopped: true,
    isToBegin: false,
  },
  {
    title: 'in place when only an empty set is left of an earlier update',
    strategy: 'InPlaceUpdate',
    now: [0, 0],
    old: [
      [0, 0],
      [3, 3],
    ],
    isStopped: true,
    isToBegin: true,
  },
])('a rollout $title has yet to begin: $isToBegin', ({ strategy = 'RollingUpdate', now, old, isStopped, ...want }) => {
  const facts = ([size, existing]: Size): SetFacts => ({ ...EMPTY_SET, size, existing });
  const oldSets = old.map(([size], i) =>
    machineSet((s) => {
      s.spec.replicas = size;
      if (isStopped === true && i === 0) s.metadata.labels[SCALE_UP_DISABLED_LABEL] = 'true';
    }),
  );
  const world = {
    deployment: machineDeployment((d) => void (d.spec.strategy = { type: strategy })),
    newSet: now === undefined ? undefined : machineSet(),
    oldSets,
    facts: { newSet: now && facts(now), oldSets: old.map(facts) },
  };

  expect(isToBegin(world)).toBe(want.isToBegin);
  const hasOld = old.some(([size, existing]) => size > 0 || existing > 0);
  expect(canPause(world)).toBe(hasOld && !want.isToBegin && strategy !== 'Recreate');
});
