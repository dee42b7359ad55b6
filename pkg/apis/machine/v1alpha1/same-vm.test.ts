import { expect, test } from '@jest/globals';

import { isOneVM, isSameVM } from './same-vm.ts';

test.each([
  { a: 'aws:///eu-west-1/i-1', b: 'aws:///eu-west-1/i-1', is: true },
  { a: 'aws:///eu-west-1/i-1', b: 'aws:///eu-west-1a/i-1', is: true },
  { a: 'azure:///westeurope/vm-1', b: 'azure:///subscriptions/s/providers/virtualMachines/vm-1', is: true },
  { a: 'gce:///project/zone/vm-1', b: 'gce://project/zone/vm-1', is: true },
  { a: 'vm-1', b: 'vm-1', is: true },
  { a: 'aws:///eu-west-1/i-1', b: 'aws:///eu-west-1/i-2', is: false },
  { a: 'vm-1', b: 'vm-2', is: false },
  // As Azure and vSphere may answer.
  { a: 'azure:///westeurope/vm-1', b: 'azure:///subscriptions/S/providers/virtualMachines/VM-1', is: true },
  { a: 'vm-1', b: 'sim:///zone/vm-1', is: true },
  { a: 'cn-hangzhou.i-1', b: 'alicloud://cn-hangzhou.i-1', is: true },
  { a: 'cn-hangzhou.i-1', b: 'cn-beijing.i-1', is: false },
  // Ids that end before they name a VM.
  { a: 'aws:///eu-west-1/', b: 'aws:///eu-west-1a/', is: false },
  { a: 'aws://', b: 'aws:///', is: false },
  { a: 'aws://', b: 'gce://', is: false },
  { a: 'aws://', b: 'aws:///eu-west-1/i-1', is: false },
  { a: '/', b: '//', is: false },
  { a: 'aws://', b: 'aws://', is: true },
  { a: 'aws:', b: 'aws:///', is: false },
  { a: 'aws:///eu-west-1/i-1', b: 'aws:///eu-west-1/i-1/', is: false },
  // What follows the name is a part of it: nobody says what it means.
  { a: 'gce:///project/zone/vm-1', b: 'gce:///project/zone/vm-1?generation=2', is: false },
  { a: 'gce:///project/zone/vm-1', b: 'gce:///project/zone/vm-1#disk', is: false },
  { a: 'vm-1', b: 'vm-1 ', is: false },
  { a: '', b: 'vm-2', is: undefined },
  { a: '', b: '', is: undefined },
  { a: '', b: 'aws://', is: undefined },
  { a: 'vm-1', b: undefined, is: undefined },
])('provider ids "$a" and "$b" are of one VM: $is', ({ a, b, is }) => {
  expect(isSameVM(a, b)).toBe(is);
  expect(isSameVM(b, a)).toBe(is);
});

test.each([
  { what: 'in another case', a: 'azure:///WestEurope/m-1', b: 'azure:///westeurope/m-1', is: true },
  { what: 'in another place', a: 'aws:///eu-west-1/i-1', b: 'aws:///eu-west-1a/i-1', is: false },
  { what: 'with another segment', a: 'aws:///eu-west-1/i-1', b: 'aws:///eu-west-1/i-2', is: false },
])('an id $what is of one VM for certain: $is', ({ a, b, is }) => {
  expect(isOneVM(a, b)).toBe(is);
  expect(isOneVM(b, a)).toBe(is);
});
