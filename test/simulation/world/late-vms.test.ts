import { expect, jest, test } from '@jest/globals';

import { isAsAsked, MachinesWorld, NAMESPACE, pathOf, POOL } from './machines-world.ts';

jest.setTimeout(900_000);
const MINUTE_MS = 60_000;

test('a class that is deleted with its Machines in the middle of their creations is kept until VMs that appear late are gone', async () => {
  await using world = await MachinesWorld.create({ seed: 1, replicas: 1 });
  await world.time.advance(10 * MINUTE_MS, () => isAsAsked(world));
  const [model] = world.cloud.all();
  if (model === undefined) throw new Error('there is no VM');
  world.simulation.faults.set([{ method: 'CreateMachine', effect: 'hang' }]);
  world.changePool({ spec: { replicas: 4 } });
  await world.time.advance(10_000);
  const late = world.machines.filter(({ metadata }) => metadata.name !== model.machineName);

  for (const plural of ['machinedeployments', 'machineclasses']) world.act('DELETE', pathOf(plural, POOL), {});
  world.act('DELETE', `/api/v1/namespaces/${NAMESPACE}/secrets/${POOL}`, {});
  await world.time.advance(75_000);
  const machinesLeft = world.count('machines');
  const { providerID: _id, address: _address, createdAtMs: _at, ...vm } = model;
  for (const { metadata } of late) {
    world.cloud.create({ ...vm, machineName: metadata.name, machineUID: metadata.uid, joinsAtMs: undefined });
  }
  await world.time.advance(15 * MINUTE_MS, () => world.count('machineclasses') === 0);

  expect({ late: late.length, machinesLeft }).toEqual({ late: 3, machinesLeft: 0 });
  expect({ vms: world.cloud.size, classes: world.count('machineclasses') }).toEqual({ vms: 0, classes: 0 });
});
