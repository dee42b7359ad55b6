import { describe, expect, test } from '@jest/globals';

import { machineDeployment } from '../../../test/builders.ts';
import type { MachineDeploymentSpec } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { annotatedSurge, leastAvailable, rolloutLimitsOf } from './limits.ts';

type Strategy = NonNullable<MachineDeploymentSpec['strategy']>;

const specOf = (replicas: number, strategy: Strategy): MachineDeploymentSpec => ({
  ...machineDeployment().spec,
  replicas,
  strategy,
});
const rolling = (maxSurge: number | string, maxUnavailable: number | string): Strategy => ({
  type: 'RollingUpdate',
  rollingUpdate: { maxSurge, maxUnavailable },
});
const inPlace = (orchestrationType: 'Auto' | 'Manual'): Strategy => ({
  type: 'InPlaceUpdate',
  inPlaceUpdate: { orchestrationType, maxSurge: 2, maxUnavailable: 1 },
});

describe('a rollout', () => {
  test.each([
    { what: 'as written', replicas: 10, strategy: rolling(2, 3), surge: 2, unavailable: 3 },
    { what: 'with surge alone', replicas: 10, strategy: rolling(1, 0), surge: 1, unavailable: 0 },
    { what: 'with neither, by one', replicas: 10, strategy: rolling(0, 0), surge: 0, unavailable: 1 },
    {
      what: 'with percentages: surge up, missing down',
      replicas: 7,
      strategy: rolling('20%', '20%'),
      surge: 2,
      unavailable: 1,
    },
    {
      what: 'with percentages that come to nothing',
      replicas: 3,
      strategy: rolling('0%', '20%'),
      surge: 0,
      unavailable: 1,
    },
    { what: 'with more missing than there are', replicas: 2, strategy: rolling(0, 5), surge: 0, unavailable: 2 },
    { what: 'of nothing', replicas: 0, strategy: rolling(0, 0), surge: 0, unavailable: 0 },
    { what: 'in place', replicas: 4, strategy: inPlace('Auto'), surge: 2, unavailable: 1 },
    { what: 'in place, by hand', replicas: 4, strategy: inPlace('Manual'), surge: 0, unavailable: 1 },
    { what: 'of type Recreate', replicas: 4, strategy: { type: 'Recreate' as const }, surge: 0, unavailable: 0 },
  ])('$what: $surge more and $unavailable fewer of $replicas', ({ replicas, strategy, surge, unavailable }) => {
    expect(rolloutLimitsOf(specOf(replicas, strategy))).toEqual({ replicas, surge, unavailable });
  });

  test.each([
    { replicas: 10, unavailable: 2, preservedFailed: 0, least: 8 },
    { replicas: 10, unavailable: 0, preservedFailed: 3, least: 7 },
    { replicas: 2, unavailable: 1, preservedFailed: 5, least: 0 },
  ])(
    'of $replicas leaves $least, with $preservedFailed that are preserved',
    ({ preservedFailed, least, ...limits }) => {
      expect(leastAvailable({ ...limits, surge: 0 }, preservedFailed)).toBe(least);
    },
  );

  test('in place has no surge that is noted on sets', () => {
    expect(annotatedSurge(specOf(4, inPlace('Auto')))).toBe(0);
    expect(annotatedSurge(specOf(4, rolling(2, 0)))).toBe(2);
  });
});
