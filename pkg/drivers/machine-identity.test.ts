import { describe, expect, test } from '@jest/globals';

import { isVMOf, type MachineIdentity, type TaggedVM } from './machine-identity.ts';

const vm: TaggedVM = {
  providerID: 'sim:///1',
  cluster: 'c-1',
  namespace: 'shoot',
  className: 'small',
  machineName: 'm-1',
  machineUID: 'u-1',
};
const machine: MachineIdentity = { cluster: 'c-1', namespace: 'shoot', name: 'm-1', uid: 'u-1', providerID: undefined };
const untagged = { cluster: '', namespace: '', machineUID: undefined };
const byID = { providerID: 'sim:///1' };

describe('isVMOf', () => {
  test.each<{ what: string; vm: Partial<TaggedVM>; machine: Partial<MachineIdentity>; owns: boolean }>([
    { what: 'name and UID', vm: {}, machine: {}, owns: true },
    {
      what: 'provider id and UID, whatever the name',
      vm: { machineName: 'x' },
      machine: { providerID: 'sim:///1' },
      owns: true,
    },
    { what: 'the name on a VM without tags', vm: untagged, machine: {}, owns: true },
    { what: 'the provider id on a VM without tags', vm: untagged, machine: { providerID: 'sim:///1' }, owns: true },
    { what: 'the name on a VM with a namespace and no UID', vm: { machineUID: undefined }, machine: {}, owns: true },
    {
      what: 'the provider id on a VM that has lost its name',
      vm: { ...untagged, machineName: '' },
      machine: byID,
      owns: true,
    },
    {
      what: "the provider id on another machine's VM without tags",
      vm: { ...untagged, machineName: 'x' },
      machine: byID,
      owns: false,
    },
    { what: 'the provider id in another namespace', vm: {}, machine: { ...byID, namespace: 'x' }, owns: false },
    { what: 'the provider id in another cluster', vm: {}, machine: { ...byID, cluster: 'c-2' }, owns: false },
    {
      what: 'a stub with the provider id, under another name',
      vm: { ...untagged, machineName: 'x' },
      machine: { ...byID, uid: undefined },
      owns: true,
    },
    { what: 'a second VM of the name, beside the known one', vm: {}, machine: { providerID: 'sim:///2' }, owns: true },
    { what: 'the name of another UID', vm: {}, machine: { uid: 'u-2' }, owns: false },
    { what: 'the provider id of another UID', vm: {}, machine: { uid: 'u-2', providerID: 'sim:///1' }, owns: false },
    { what: 'the name in another namespace', vm: {}, machine: { namespace: 'x' }, owns: false },
    { what: 'the name in another cluster', vm: {}, machine: { cluster: 'c-2' }, owns: false },
    { what: 'a stub with the provider id', vm: {}, machine: { uid: undefined, providerID: 'sim:///1' }, owns: true },
    {
      what: 'a stub with the name of another VM',
      vm: {},
      machine: { uid: undefined, providerID: 'sim:///2' },
      owns: false,
    },
  ])('takes $what for the same: $owns', ({ vm: vmChange, machine: machineChange, owns }) => {
    expect(isVMOf({ ...vm, ...vmChange }, { ...machine, ...machineChange })).toBe(owns);
  });
});
