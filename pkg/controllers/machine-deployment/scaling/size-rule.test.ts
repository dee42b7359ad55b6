import { describe, expect, test } from '@jest/globals';

import type { MachineDeploymentStrategy } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import { EMPTY_SET, type SetFacts } from '../sets/set-facts.ts';
import { annotatedSurge, rolloutLimitsOf } from '../../replicas/limits.ts';
import { grownSize } from './size-rule.ts';

const facts = (size: number, existing = size): SetFacts => ({ ...EMPTY_SET, size, existing });
const rolling = (maxSurge: number | string, maxUnavailable: number | string): MachineDeploymentStrategy => ({
  type: 'RollingUpdate',
  rollingUpdate: { maxSurge, maxUnavailable },
});

describe('limits', () => {
  test.each([
    { title: 'counts', strategy: rolling(3, 2), surge: 3, unavailable: 2 },
    { title: 'surge rounded up, unavailable down', strategy: rolling('25%', '25%'), surge: 3, unavailable: 2 },
    { title: 'unavailable capped at the replicas', strategy: rolling(0, 20), surge: 0, unavailable: 10 },
    { title: 'one unavailable when both are nothing', strategy: rolling(0, 0), surge: 0, unavailable: 1 },
    { title: 'one unavailable when both round to nothing', strategy: rolling('0%', '5%'), surge: 0, unavailable: 1 },
    { title: 'nothing for Recreate', strategy: { type: 'Recreate' }, surge: 0, unavailable: 0 },
    {
      title: 'those of an automatic in-place update',
      strategy: { type: 'InPlaceUpdate', inPlaceUpdate: { maxSurge: 1, maxUnavailable: 0, orchestrationType: 'Auto' } },
      surge: 1,
      unavailable: 0,
    },
    {
      title: 'no surge for a manual in-place update',
      strategy: {
        type: 'InPlaceUpdate',
        inPlaceUpdate: { maxSurge: 1, maxUnavailable: 0, orchestrationType: 'Manual' },
      },
      surge: 0,
      unavailable: 1,
    },
  ])('are $title', ({ strategy, surge, unavailable }) => {
    expect(rolloutLimitsOf({ replicas: 10, strategy, template: {} })).toEqual({ replicas: 10, surge, unavailable });
  });

  test('nothing is unavailable of nothing', () => {
    expect(rolloutLimitsOf({ replicas: 0, strategy: rolling(0, 0), template: {} }).unavailable).toBe(0);
  });

  test('only a RollingUpdate notes a surge', () => {
    const inPlaceUpdate = { maxSurge: 2, maxUnavailable: 1, orchestrationType: 'Auto' };

    expect(annotatedSurge({ replicas: 10, strategy: rolling(2, 1), template: {} })).toBe(2);
    expect(annotatedSurge({ replicas: 10, strategy: { type: 'InPlaceUpdate', inPlaceUpdate }, template: {} })).toBe(0);
  });
});

describe('the new set of 10 replicas and surge 3', () => {
  const limits = { replicas: 10, surge: 3, unavailable: 2 };

  test.each([
    { title: 'starts with all replicas when there is nothing old', now: facts(0), old: [], size: 10 },
    { title: 'starts with the surge', now: facts(0), old: [facts(10)], size: 3 },
    { title: 'is not given the surge twice before its machines exist', now: facts(3, 0), old: [facts(10)], size: 3 },
    { title: 'waits for old machines that are still going', now: facts(3), old: [facts(8, 10)], size: 3 },
    { title: 'grows as old machines vanish', now: facts(3), old: [facts(8, 8)], size: 5 },
    { title: 'never grows beyond the replicas', now: facts(9), old: [facts(0, 0)], size: 10 },
    { title: 'never shrinks', now: facts(5), old: [facts(12)], size: 5 },
  ])('$title', ({ now, old, size }) => {
    expect(grownSize(now, old, limits)).toBe(size);
  });
});
