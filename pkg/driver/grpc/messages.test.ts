import { expect, test } from '@jest/globals';

import type { ListedMachine, VirtualMachine } from '../driver.ts';
import { VirtualMachine as WireVM, ListedMachine as WireListed } from './gen/machine/driver/v1/driver.ts';
import { toListedMachine, toVirtualMachine } from './messages.ts';

test('what a driver leaves out against its types is no text on the wire, and not the word for it', () => {
  const answered: unknown = {
    providerID: null,
    nodeName: undefined,
    addresses: [{ type: 'InternalIP', address: null }],
    capacity: { cpu: '2', memory: undefined, pods: null },
  };
  const listed: unknown = { providerID: 'sim:///m-1', machineName: null };

  const vm = toVirtualMachine(answered as VirtualMachine);
  const machine = toListedMachine(listed as ListedMachine);

  expect(WireVM.decode(WireVM.encode(vm).finish())).toEqual({
    providerId: '',
    nodeName: '',
    addresses: [{ type: 'InternalIP', address: '' }],
    capacity: { cpu: '2' },
  });
  expect(WireListed.decode(WireListed.encode(machine).finish())).toMatchObject({
    providerId: 'sim:///m-1',
    machineName: '',
  });
});

test('a driver that leaves out the addresses of a VM has told none', () => {
  expect(toVirtualMachine({ providerID: 'sim:///m-1', nodeName: 'm-1' })).toMatchObject({
    providerId: 'sim:///m-1',
    addresses: [],
  });
});
