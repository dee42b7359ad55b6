import { describe, expect, test } from '@jest/globals';

import type { LabelSelector } from '../apis/meta.ts';
import type { Pod, PodDisruptionBudget } from '../apis/wire.ts';
import { budgetOf, isMisconfigured } from './disruption-budget.ts';

function budget(name: string, selector: LabelSelector | undefined, namespace = 'default'): PodDisruptionBudget {
  return {
    metadata: { name, namespace, uid: name, resourceVersion: '1', creationTimestamp: '', generation: 1 },
    spec: selector === undefined ? {} : { selector },
  };
}

const pod: Pod = {
  metadata: {
    name: 'web-1',
    namespace: 'default',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '',
    labels: { app: 'web', tier: 'front' },
  },
};

describe('budgetOf', () => {
  test.each([
    { selector: { matchLabels: { app: 'web' } }, want: true },
    { selector: { matchLabels: { app: 'web', tier: 'back' } }, want: false },
    { selector: {}, want: true },
    { selector: undefined, want: false },
    { selector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['web', 'api'] }] }, want: true },
    { selector: { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['web'] }] }, want: false },
    { selector: { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['a'] }] }, want: true },
    { selector: { matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }, want: false },
    { selector: { matchExpressions: [{ key: 'tier', operator: 'Exists' }] }, want: true },
    { selector: { matchExpressions: [{ key: 'tier', operator: 'DoesNotExist' }] }, want: false },
    {
      selector: { matchLabels: { app: 'web' }, matchExpressions: [{ key: 'zone', operator: 'Exists' }] },
      want: false,
    },
  ] as { selector: LabelSelector | undefined; want: boolean }[])('$selector guards the pod: $want', (row) => {
    expect(budgetOf(pod, [budget('pdb', row.selector)]) !== undefined).toBe(row.want);
  });

  test("looks only at budgets of the pod's namespace", () => {
    expect(budgetOf(pod, [budget('pdb', {}, 'other')])).toBeUndefined();
  });

  test('takes the first by name when several match', () => {
    expect(budgetOf(pod, [budget('b', {}), budget('a', {})])?.metadata.name).toBe('a');
  });
});

describe('isMisconfigured', () => {
  const hopeless = {
    observedGeneration: 1,
    expectedPods: 3,
    currentHealthy: 3,
    desiredHealthy: 3,
    disruptionsAllowed: 0,
  };

  test.each([
    { what: 'all pods well, nothing allowed', status: hopeless, want: true },
    { what: 'more pods than expected, nothing allowed', status: { ...hopeless, currentHealthy: 4 }, want: true },
    { what: 'one allowed', status: { ...hopeless, disruptionsAllowed: 1 }, want: false },
    { what: 'a pod is not well', status: { ...hopeless, currentHealthy: 2 }, want: false },
    { what: 'no pods', status: { ...hopeless, expectedPods: 0, currentHealthy: 0 }, want: false },
    {
      what: 'an eviction under way',
      status: { ...hopeless, disruptedPods: { 'web-2': '2026-01-01T00:00:00Z' } },
      want: false,
    },
    { what: 'a status behind the spec', status: { ...hopeless, observedGeneration: 0 }, want: false },
    { what: 'no status yet', status: undefined, want: false },
  ])('$what: $want', ({ status, want }) => {
    const { metadata, spec } = budget('pdb', {});

    expect(isMisconfigured({ metadata, ...(spec && { spec }), ...(status && { status }) })).toBe(want);
  });
});
