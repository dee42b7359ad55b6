import { describe, expect, test } from '@jest/globals';

import { parseProviderSpec } from './provider-spec.ts';

describe('the provider spec of machines of kwok', () => {
  test('may be empty', () => {
    expect(parseProviderSpec({})).toEqual({ capacity: {}, nodeLabels: {} });
  });

  test('keeps what it says', () => {
    const spec = { capacity: { cpu: '500m', memory: '64Gi', 'example.com/gpu': '8' }, nodeLabels: { pool: 'a' } };

    expect(parseProviderSpec(spec)).toEqual(spec);
  });

  test.each([
    { spec: 'x', member: 'providerSpec' },
    { spec: { capacity: { cpu: 4 } }, member: 'providerSpec.capacity.cpu' },
    { spec: { capacity: { memory: 'plenty' } }, member: 'providerSpec.capacity.memory' },
    { spec: { nodeLabels: { a: '' } }, member: 'providerSpec.nodeLabels.a' },
    { spec: { size: 'x' }, member: 'providerSpec.size' },
  ])('is refused with the name of $member', ({ spec, member }) => {
    expect(() => parseProviderSpec(spec)).toThrow(
      expect.objectContaining({ code: 'InvalidArgument', detail: expect.stringContaining(`${member}:`) }),
    );
  });
});
