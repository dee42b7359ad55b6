import { describe, expect, test } from '@jest/globals';

import { machine, machineDeployment } from '../../../test/builders.ts';
import { requestedPolicy, policyInForce, skipsDrain, weaker } from './deletion-policy.ts';

const KEY = 'machine.sapcloud.io/deletion-policy';
const IN_FORCE = 'machine.sapcloud.io/deletion-policy-in-force';

describe('the policy that is asked for', () => {
  test.each([
    { own: undefined, inherited: undefined, want: undefined },
    { own: 'unsafe', inherited: undefined, want: 'unsafe' },
    { own: undefined, inherited: 'forced', want: 'forced' },
    { own: 'graceful', inherited: 'forced', want: 'graceful' },
    { own: 'Unsafe', inherited: 'forced', want: 'graceful' },
    { own: '', inherited: 'forced', want: 'graceful' },
    { own: undefined, inherited: 'true', want: 'graceful' },
  ])('with $own on the Machine and $inherited on its MachineDeployment is $want', ({ own, inherited, want }) => {
    const one = machine((m) => {
      if (own !== undefined) m.metadata.annotations = { [KEY]: own };
    });
    const deployment = machineDeployment((d) => {
      d.metadata.name = 'pool';
      if (inherited !== undefined) d.metadata.annotations = { [KEY]: inherited };
    });

    expect(requestedPolicy(one, deployment)).toBe(want);
  });

  test('is none without a MachineDeployment', () => {
    expect(requestedPolicy(machine(), undefined)).toBeUndefined();
  });
});

test.each([
  { recorded: undefined, asked: undefined, want: undefined },
  { recorded: undefined, asked: 'graceful', want: 'graceful' },
  { recorded: 'graceful', asked: undefined, want: 'graceful' },
  { recorded: 'graceful', asked: 'unsafe', want: 'unsafe' },
  { recorded: 'unsafe', asked: 'forced', want: 'forced' },
  { recorded: 'unsafe', asked: 'graceful', want: 'unsafe' },
  { recorded: 'forced', asked: 'unsafe', want: 'forced' },
  { recorded: 'forced', asked: 'graceful', want: 'forced' },
  { recorded: 'forced', asked: undefined, want: 'forced' },
] as const)('a deletion with $recorded that is asked to be $asked is $want', ({ recorded, asked, want }) => {
  expect(weaker(recorded, asked)).toBe(want);
});

test.each([
  { value: undefined, want: undefined },
  { value: 'forced', want: 'forced' },
  { value: 'nonsense', want: 'graceful' },
])('a record of $value is read as $want', ({ value, want }) => {
  const one = machine((m) => {
    if (value !== undefined) m.metadata.annotations = { [IN_FORCE]: value };
  });

  expect(policyInForce(one)).toBe(want);
});

test.each([
  { policy: undefined, want: false },
  { policy: 'graceful', want: false },
  { policy: 'unsafe', want: true },
  { policy: 'forced', want: true },
] as const)('$policy skips the drain: $want', ({ policy, want }) => {
  expect(skipsDrain(policy)).toBe(want);
});
