import { describe, expect, test } from '@jest/globals';

import { machine, machineClass } from '../../../../test/builders.ts';
import { MemoryClient } from '../../../../test/memory-client.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { ListedMachine } from '../../../driver/driver.ts';
import { DriverError } from '../../../driver/error.ts';
import { Store } from '../../../kube/cache/store.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { machines } from '../../../kube/client/resource.ts';
import { MACHINE_INDEXES } from '../../../operator/indexes/machine-indexes.ts';
import { FakeDriver } from '../../../../test/fakes/driver.ts';
import { survey } from './survey.ts';

const signal = new AbortController().signal;

/** Two classes, each with a driver that notes when it is asked to list. */
function scene() {
  const reader = new MemoryClient();
  reader.put(machines, machine());
  const known = new Store<Machine>(MACHINE_INDEXES);
  const good = new FakeDriver();
  const bad = new FakeDriver();
  for (const driver of [good, bad]) {
    driver.methods = new Set(['ListMachines']);
    driver.list = () => {
      reader.reads.push('VMs');
      return Promise.resolve([]);
    };
  }
  const classes = [machineClass(), machineClass((c) => void (c.metadata.name = 'bad'))];
  const deps = {
    drivers: {
      resolve: ({ metadata: { name } }: { metadata: { name: string } }) => (name === 'bad' ? bad : good),
      all: () => [],
    },
    secrets: { of: () => Promise.resolve({ data: {}, missing: [], fingerprint: '' }) },
    reader,
    namespace: 'default',
    machines: known,
  };
  return { reader, good, bad, known, look: () => survey(deps, classes, signal) };
}

describe('a look', () => {
  test('reads Machines after the last VM list has come', async () => {
    const { reader, look } = scene();

    const { machines: seen } = await look();

    expect(reader.reads).toEqual(['VMs', 'VMs', 'machines']);
    expect(seen).toHaveLength(1);
  });

  test('goes on when one class cannot be listed, and says which', async () => {
    const { bad, look } = scene();
    const error = new DriverError('Unavailable', 'no answer');
    bad.list = () => Promise.reject(error);

    const { lists, failures } = await look();

    expect(lists.map(({ key }) => key)).toEqual(['default/class-1']);
    expect(failures).toEqual([{ key: 'default/bad', error }]);
  });

  test('names a class whose driver cannot list', async () => {
    const { reader, bad, look } = scene();
    bad.methods = new Set();

    const { lists, unlistable, failures } = await look();

    expect([lists, unlistable].map((some) => some.map(({ key }) => key))).toEqual([
      ['default/class-1'],
      ['default/bad'],
    ]);
    expect(failures).toEqual([]);
    expect(reader.reads).toEqual(['VMs', 'machines']);
  });

  test('fails when Machines cannot be read', async () => {
    const { reader, look } = scene();
    reader.readFailure = new ApiError(503, 'ServiceUnavailable', 'no answer');

    await expect(look()).rejects.toThrow('no answer');
  });
});

describe('a VM that is listed by the name of a class alone', () => {
  const VM: ListedMachine = { providerID: 'sim:///vm-1', machineName: 'm-1', machineUID: undefined };
  const inNamespace = (namespace: string, providerID: string): Machine =>
    machine((m) => {
      Object.assign(m.metadata, { namespace, uid: 'u-1' });
      m.spec.providerID = providerID;
    });

  test.each([
    { what: 'is ours if no Machine has it', known: [], vm: VM, isOurs: true },
    { what: 'is ours if one of ours has it', known: [inNamespace('default', 'sim:///vm-1')], vm: VM, isOurs: true },
    {
      what: 'is not if one of another namespace has it',
      known: [inNamespace('a', 'sim:///vm-1')],
      vm: VM,
      isOurs: false,
    },
    {
      what: 'is not if one of another namespace with its name has none',
      known: [inNamespace('a', '')],
      vm: VM,
      isOurs: false,
    },
    {
      what: 'is not if one of another namespace writes its ID otherwise',
      known: [inNamespace('a', 'sim://v2/vm-1')],
      vm: VM,
      isOurs: false,
    },
    {
      what: 'is ours if one of its name has another VM',
      known: [inNamespace('a', 'sim:///vm-2')],
      vm: VM,
      isOurs: true,
    },
    {
      what: 'is ours if it has another UID than one of its name',
      known: [inNamespace('a', '')],
      vm: { ...VM, machineUID: 'u-2' },
      isOurs: true,
    },
    {
      what: 'is ours if it carries our namespace, whoever has that name',
      known: [inNamespace('a', '')],
      vm: { ...VM, machineNamespace: 'default' },
      isOurs: true,
    },
    {
      what: 'is not if it is told with our namespace, but only one of another namespace has it',
      known: [inNamespace('a', 'sim:///vm-1')],
      vm: { ...VM, machineNamespace: 'default' },
      isOurs: false,
    },
    {
      what: 'is not if it is told with our namespace, but only one of another namespace has it, in another case',
      known: [inNamespace('a', 'sim:///VM-1')],
      vm: { ...VM, machineNamespace: 'default' },
      isOurs: false,
    },
    {
      what: 'is ours if one of ours has it in another case, whoever has recorded it too',
      known: [inNamespace('a', 'sim:///vm-1'), inNamespace('default', 'sim:///VM-1')],
      vm: { ...VM, machineNamespace: 'default' },
      isOurs: true,
    },
    {
      what: 'is ours if one of ours has it, whoever has recorded it too',
      known: [inNamespace('a', 'sim:///vm-1'), inNamespace('default', 'sim:///vm-1')],
      vm: { ...VM, machineNamespace: 'default' },
      isOurs: true,
    },
  ])('$what', async ({ known: machinesOfAll, vm, isOurs }) => {
    const { good, known, look } = scene();
    good.list = () => Promise.resolve([vm] as readonly object[] as readonly never[]);
    for (const one of machinesOfAll) known.put(one);

    const { lists } = await look();

    const found = lists.map(({ vms, foreign }) => [vms, foreign]);
    expect(found[0]).toEqual(isOurs ? [[vm], []] : [[], [vm]]);
  });
});
