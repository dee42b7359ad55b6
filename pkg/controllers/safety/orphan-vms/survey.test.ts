import { describe, expect, test } from '@jest/globals';

import { machine, machineClass } from '../../../../test/builders.ts';
import { MemoryClient } from '../../../../test/memory-client.ts';
import { DriverError } from '../../../driver/error.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { machines } from '../../../kube/client/resource.ts';
import { FakeDriver } from '../../../../test/fakes/driver.ts';
import { survey } from './survey.ts';

const signal = new AbortController().signal;

/** Two classes, each with a driver that notes when it is asked to list. */
function scene() {
  const reader = new MemoryClient();
  reader.put(machines, machine());
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
  };
  return { reader, bad, look: () => survey(deps, classes, signal) };
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
