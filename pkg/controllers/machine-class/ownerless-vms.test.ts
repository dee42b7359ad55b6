import { expect, test } from '@jest/globals';

import { machine, machineClass } from '../../../test/builders.ts';
import { MemoryClient } from '../../../test/memory-client.ts';
import type { ListedMachine } from '../../driver/driver.ts';
import { machines } from '../../kube/resource.ts';
import { FakeDriver } from '../../../test/fakes/driver.ts';
import { lookForOwnerlessVMs } from './ownerless-vms.ts';

const VM: ListedMachine = { providerID: 'sim:///m-1', machineName: 'm-1', machineUID: undefined };

test.each([
  { title: 'a VM without Machine', listed: [VM], owners: [], isDriven: true, want: 'some' },
  { title: 'a VM whose Machine is there', listed: [VM], owners: [machine()], isDriven: true, want: 'none' },
  { title: 'no VM', listed: [], owners: [], isDriven: true, want: 'none' },
  { title: 'a provider without driver', listed: [VM], owners: [], isDriven: false, want: 'unknown' },
])('$title: $want', async ({ listed, owners, isDriven, want }) => {
  const driver = new FakeDriver();
  driver.methods = new Set(['ListMachines']);
  // The fake lists nothing by its type.
  driver.list = () => Promise.resolve(listed as readonly unknown[] as readonly never[]);
  const reader = new MemoryClient();
  reader.put(machines, ...owners);
  const deps = {
    drivers: { resolve: () => (isDriven ? driver : undefined), all: () => [driver] },
    secrets: { of: () => Promise.resolve({ data: {}, missing: [], fingerprint: '' }) },
    reader,
    namespace: 'default',
  };

  expect(await lookForOwnerlessVMs(deps, machineClass(), new AbortController().signal)).toBe(want);
});
