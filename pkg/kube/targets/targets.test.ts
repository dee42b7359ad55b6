import { expect, test } from '@jest/globals';

import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { type Target, singleTarget } from './targets.ts';

const machine: Machine = {
  metadata: { name: 'm', uid: 'u', resourceVersion: '1', creationTimestamp: '' },
  spec: {},
};

test('every machine has the one target', () => {
  const target = { cluster: 'target' } as Target;

  const targets = singleTarget(target);

  expect(targets.of(machine)).toBe(target);
  expect(targets.all()).toEqual([target]);
});

test('without a target cluster no machine has one', () => {
  const targets = singleTarget(undefined);

  expect(targets.of(machine)).toBeUndefined();
  expect(targets.all()).toEqual([]);
});
