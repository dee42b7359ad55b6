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
  { what: 'in another place', a: 'aws:///eu-west-1/i-1', b: 'aws:///eu-west-1a/i-1', is: true },
  { what: 'by its name in another place', a: 'gce:///zone-a/m-1', b: 'gce:///zone-b/m-1', is: false },
  { what: 'by a name made of its own', a: 'gce:///zone-a/shoot-M-1', b: 'gce:///zone-b/shoot-m-1', is: false },
  { what: 'with another segment', a: 'aws:///eu-west-1/i-1', b: 'aws:///eu-west-1/i-2', is: false },
])('an id of m-1 $what is of one VM for certain: $is', ({ a, b, is }) => {
  expect(isOneVM(a, b, 'm-1')).toBe(is);
  expect(isOneVM(b, a, 'm-1')).toBe(is);
});

const DRAWN = '0be4d1c2-beef-4a1b-9c3d-00000000cafe';

test.each([
  { name: 'db', segment: 'i-0db4e1', is: true },
  { name: 'w1', segment: '5f0cw1', is: true },
  { name: 'beef', segment: DRAWN, is: true },
  { name: '00000000cafe', segment: DRAWN.toUpperCase(), is: true },
  { name: 'a.b', segment: 'a-b', is: true },
  { name: 'db', segment: 'db', is: false },
  { name: 'db', segment: 'shoot_DB.vm', is: false },
  { name: 'db', segment: `i-0db4e1-db`, is: false },
  { name: 'db', segment: `${DRAWN}-db`, is: false },
  { name: 'beef', segment: `beef-${DRAWN}`, is: false },
  { name: 'a.b', segment: 'shoot-a.b', is: false },
  { name: `m-${DRAWN}`, segment: `vm-m-${DRAWN}`, is: false },
  { name: 'shoot-z1-abcde-fghij', segment: 'shoot-z1-abcde-fghij', is: false },
])('"$segment" in two places is of one VM for certain, of a Machine $name: $is', ({ name, segment, is }) => {
  expect(isOneVM(`x:///place/${segment}`, `x:///place-a/${segment}`, name)).toBe(is);
});
