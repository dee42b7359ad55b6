import { expect, test } from '@jest/globals';

import { endInOneDrawn, isOneVM, isSameVM } from './same-vm.ts';

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

const UUID = '0be4d1c2-beef-4a1b-9c3d-00000000cafe';
const UID = '7a91f0d3-52bc-4e68-8f17-c40b6d2e9a35';

test.each([
  { segment: 'i-0123456789abcdef0', is: true },
  { segment: 'i-1a2b3c4d', is: true },
  { segment: 'ins-l8j2xkqk', is: true },
  { segment: '12345678', is: true },
  { segment: UUID, is: true },
  { segment: UUID.toUpperCase(), is: true },
  { segment: `0717_${UUID}`, is: true },
  { segment: `02c7_${UUID}`, is: true },
  { segment: `02q7_${UUID}`, is: true },
  // As vSphere draws them.
  { segment: '4232e3c7-d83c-d72b-6a8e-1f0b7c9d2e45', is: true },
  { segment: `instance-${UUID}`, is: true },
  { segment: `urn:vcloud:vm:${UUID}`, is: true },
  { segment: `vm_${UUID}?zone=1`, is: true },
  { segment: `instance-${UID}`, is: false },
  // Of a cluster, with a name after it; and a hash of a name.
  { segment: `${UUID}-worker`, is: false },
  { segment: `${UUID}?vm=shoot-pool-5f7c9d8b64-x2k4q`, is: false },
  { segment: `${UUID}?vm=shoot-pool-5f7c9d8b64-x2k4q.local`, is: false },
  { segment: `shoot-pool-5f7c9d8b64-x2k4q.${UUID}`, is: false },
  { segment: '0be4d1c2-beef-5a1b-9c3d-00000000cafe', is: false },
  { segment: 'cn-hangzhou.i-bp1a2b3c4d5e6f7g', is: true },
  { segment: 'ocid1.instance.oc1.iad.anuwcljt5x2k4qabcd', is: true },
  // As each account may count its own.
  { segment: '1234567', is: false },
  { segment: 'i-00000001', is: false },
  { segment: 'vm0000001a', is: false },
  { segment: '00000000-0000-0000-0000-000000000017', is: false },
  { segment: '00000000-0000-0000-0000-000000000000', is: false },
  { segment: 'node_5f3a9b2c', is: false },
  { segment: 'dev1_machine12a', is: false },
  { segment: 'machine1234567', is: false },
  // As each may name them.
  { segment: 'virtualmachine', is: false },
  { segment: 'shoot-pool-5f7c9d8b64-x2k4q', is: false },
  { segment: 'Shoot_POOL_5f7c9d8b.vm', is: false },
  { segment: `vm-${UID}`, is: false },
  { segment: 'cluster1a2b3c-shoot-pool-5f7c9d8b64-x2k4q', is: false },
  { segment: 'shoot-pool-5f7c9d8b64-x2k4q-5f3a9b2c', is: false },
  { segment: '20240101-x', is: false },
  // As they may be made of the UID, or of the name.
  { segment: UID.replaceAll('-', ''), is: false },
  { segment: `vm-${UID.replaceAll('-', '')}`, is: false },
  { segment: `m${UID.replaceAll('-', '').slice(0, 12)}`, is: false },
  { segment: 'shootpool5f7c9d8b64x2k4q', is: false },
])('that both ids of a Machine end in "$segment" proves that they are of one VM: $is', ({ segment, is }) => {
  const given = ['shoot-pool-5f7c9d8b64-x2k4q', UID];

  expect(endInOneDrawn(`x:///place/${segment}`, `x:///place-a/${segment}`, given)).toBe(is);
});

test.each([
  { name: 'shoot--foo--hangzhou-pool-z1-5f7c9-abcde', segment: 'cn-hangzhou.i-bp1a2b3c4d5e6f7g' },
  { name: 'shoot--p--frankfurt-w-5f7c9-x2k4q', segment: 'ocid1.instance.oc1.eu-frankfurt-1.anuwcljt5x2k4qabcd' },
  { name: 'instance-pool-5f7c9-x2k4q', segment: `instance-${UUID}` },
  { name: 'shoot--p--westeurope-w-5f7c9-x2k4q', segment: `vm_${UUID}?zone=westeurope-1` },
  { name: 'be', segment: UUID },
  { name: 'westeurope', segment: `vm_${UUID}?zone=westeurope` },
  { name: 'vm', segment: `urn:vcloud:vm:${UUID}` },
])('what stands beside a drawn word, or is in it by chance, makes nothing of $segment that is like $name', (row) => {
  expect(endInOneDrawn(`x:///place/${row.segment}`, `x:///place-a/${row.segment}`, [row.name, UID])).toBe(true);
});

test('ids that end in two drawn segments are of two VMs', () => {
  expect(endInOneDrawn(`x:///place/${UUID}`, `x:///place/i-0123456789abcdef0`, [])).toBe(false);
});
