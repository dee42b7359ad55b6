import { expect, test } from '@jest/globals';

import { isSameVM } from './same-vm.ts';

test.each([
  { a: 'aws:///eu-west-1/i-1', b: 'aws:///eu-west-1/i-1', is: true },
  { a: 'aws:///eu-west-1/i-1', b: 'aws:///eu-west-1a/i-1', is: true },
  { a: 'azure:///westeurope/vm-1', b: 'azure:///subscriptions/s/providers/virtualMachines/vm-1', is: true },
  { a: 'gce:///project/zone/vm-1', b: 'gce://project/zone/vm-1', is: true },
  { a: 'vm-1', b: 'vm-1', is: true },
  { a: 'aws:///eu-west-1/i-1', b: 'aws:///eu-west-1/i-2', is: false },
  { a: 'vm-1', b: 'vm-2', is: false },
  { a: '', b: 'vm-2', is: undefined },
  { a: 'vm-1', b: undefined, is: undefined },
])('provider ids "$a" and "$b" are of one VM: $is', ({ a, b, is }) => {
  expect(isSameVM(a, b)).toBe(is);
  expect(isSameVM(b, a)).toBe(is);
});
