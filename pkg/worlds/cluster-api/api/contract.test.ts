import { describe, expect, test } from '@jest/globals';

import { contractOf, definitionNameOf } from './contract.ts';

const V1BETA1 = 'cluster.x-k8s.io/v1beta1';
const V1BETA2 = 'cluster.x-k8s.io/v1beta2';

describe('the definition of a kind', () => {
  test.each([
    { labels: { [V1BETA2]: 'v1beta1' }, want: { contract: 'v1beta2', version: 'v1beta1' } },
    { labels: { [V1BETA2]: 'v1beta1_v1beta2' }, want: { contract: 'v1beta2', version: 'v1beta2' } },
    { labels: { [V1BETA2]: 'v1_v2alpha1_v1beta9' }, want: { contract: 'v1beta2', version: 'v1' } },
    { labels: { [V1BETA2]: 'v1beta2_v1beta10' }, want: { contract: 'v1beta2', version: 'v1beta10' } },
    { labels: { [V1BETA2]: 'v1alpha3_v2alpha1' }, want: { contract: 'v1beta2', version: 'v2alpha1' } },
    { labels: { [V1BETA2]: 'other_v1alpha1' }, want: { contract: 'v1beta2', version: 'v1alpha1' } },
    { labels: { [V1BETA2]: 'b_a' }, want: { contract: 'v1beta2', version: 'a' } },
    { labels: { [V1BETA1]: 'v1beta1', [V1BETA2]: 'v1alpha4' }, want: { contract: 'v1beta2', version: 'v1alpha4' } },
    { labels: { [V1BETA1]: 'v1alpha4' }, want: { contract: 'v1beta1', version: 'v1alpha4' } },
    { labels: { [V1BETA1]: 'v1beta1', [V1BETA2]: '' }, want: { contract: 'v1beta1', version: 'v1beta1' } },
    { labels: { 'cluster.x-k8s.io/v1alpha4': 'v1alpha4' }, want: undefined },
    { labels: {}, want: undefined },
    { labels: undefined, want: undefined },
  ])('labelled $labels is read as $want', ({ labels, want }) => {
    expect(contractOf(labels)).toEqual(want);
  });

  test.each([
    { kind: 'DevMachine', want: 'devmachines.example.com' },
    { kind: 'KubeadmConfig', want: 'kubeadmconfigs.example.com' },
    { kind: 'TalosProxy', want: 'talosproxies.example.com' },
    { kind: 'FooBox', want: 'fooboxes.example.com' },
    { kind: 'Relay', want: 'relays.example.com' },
  ])('of $kind is called $want', ({ kind, want }) => {
    expect(definitionNameOf({ apiGroup: 'example.com', kind })).toBe(want);
  });
});
