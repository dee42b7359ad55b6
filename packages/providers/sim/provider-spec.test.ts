import { describe, expect, test } from '@jest/globals';

import { parseProviderSpec } from './provider-spec.ts';

describe('the provider spec of the simulated cloud', () => {
  test('may be empty or absent', () => {
    const defaults = { size: 'small', zone: 'zone-1', latencyMs: {}, initialize: false, join: true, nodeLabels: {} };

    expect(parseProviderSpec({})).toEqual(defaults);
    expect(parseProviderSpec(undefined)).toEqual(defaults);
  });

  test('keeps what it says', () => {
    const spec = {
      size: 'large',
      zone: 'zone-2',
      latencyMs: { create: 100, join: 0 },
      initialize: true,
      join: false,
      nodeLabels: { pool: 'a' },
    };

    expect(parseProviderSpec(spec)).toEqual(spec);
  });

  test.each([
    { spec: [], member: 'providerSpec' },
    { spec: { size: 1 }, member: 'providerSpec.size' },
    { spec: { zone: '' }, member: 'providerSpec.zone' },
    { spec: { latencyMs: { create: -1 } }, member: 'providerSpec.latencyMs.create' },
    { spec: { latencyMs: { create: Number.NaN } }, member: 'providerSpec.latencyMs.create' },
    { spec: { latencyMs: { delete: 1 } }, member: 'providerSpec.latencyMs.delete' },
    { spec: { join: 'yes' }, member: 'providerSpec.join' },
    { spec: { nodeLabels: { a: 1 } }, member: 'providerSpec.nodeLabels.a' },
    { spec: { flavour: 'x' }, member: 'providerSpec.flavour' },
  ])('is refused with the name of $member', ({ spec, member }) => {
    expect(() => parseProviderSpec(spec)).toThrow(
      expect.objectContaining({
        code: 'InvalidArgument',
        terminal: true,
        detail: expect.stringContaining(`${member}:`),
      }),
    );
  });
});
