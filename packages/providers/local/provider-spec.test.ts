import { describe, expect, test } from '@jest/globals';

import { parseProviderSpec } from './provider-spec.ts';

describe('the provider spec of local machines', () => {
  test('may be empty', () => {
    expect(parseProviderSpec({})).toEqual({ nodeLabels: {}, taints: [], maxPods: 110 });
  });

  test('keeps what it says', () => {
    const spec = { nodeLabels: { pool: 'a' }, taints: ['dedicated=x:NoSchedule', 'new:NoExecute'], maxPods: 5 };

    expect(parseProviderSpec(spec)).toEqual(spec);
  });

  test.each([
    { spec: 'x', member: 'providerSpec' },
    { spec: { maxPods: 0 }, member: 'providerSpec.maxPods' },
    { spec: { taints: 'x' }, member: 'providerSpec.taints' },
    { spec: { taints: ['ok:NoSchedule', 'x:Sometimes'] }, member: 'providerSpec.taints[1]' },
    { spec: { nodeLabels: { a: '' } }, member: 'providerSpec.nodeLabels.a' },
    { spec: { size: 'x' }, member: 'providerSpec.size' },
  ])('is refused with the name of $member', ({ spec, member }) => {
    expect(() => parseProviderSpec(spec)).toThrow(
      expect.objectContaining({ code: 'InvalidArgument', detail: expect.stringContaining(`${member}:`) }),
    );
  });
});
