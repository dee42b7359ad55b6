import { expect, jest, test } from '@jest/globals';

import { isAsAsked, MachinesWorld } from './machines-world.ts';

jest.setTimeout(900_000);
const MINUTE_MS = 60_000;

test('a pool that shrinks, while its class was edited so that the driver finds nothing, keeps Machines whose Nodes are ready; their VMs go when the class is right again', async () => {
  await using world = await MachinesWorld.create({ seed: 1, replicas: 3 });
  await world.time.advance(10 * MINUTE_MS, () => isAsAsked(world));
  const error = { effect: 'fail', code: 'NotFound' } as const;
  world.simulation.faults.set([
    { method: 'DeleteMachine', ...error },
    { method: 'GetMachineStatus', ...error },
  ]);
  world.changePool({ spec: { replicas: 1 } });
  await world.time.advance(8 * MINUTE_MS);
  const during = { vms: world.cloud.size, machines: world.machines.length, nodes: world.nodes.length };
  const told = world.machines.flatMap(({ status }) =>
    status?.lastOperation?.type === 'Delete' ? [status.lastOperation] : [],
  );

  world.simulation.faults.set([]);
  await world.time.advance(3 * MINUTE_MS, () => isAsAsked(world));

  expect(during).toEqual({ vms: 3, machines: 3, nodes: 3 });
  expect(told.map(({ state }) => state)).toEqual(['Failed', 'Failed']);
  expect(told[0]?.description).toContain('is Ready, so the VM is assumed to be running');
  expect({ vms: world.cloud.size, machines: world.machines.length, nodes: world.nodes.length }).toEqual({
    vms: 1,
    machines: 1,
    nodes: 1,
  });
});

test('a deletion whose answer is lost, of a VM that is gone then, is over within seconds after its Node is no longer ready', async () => {
  await using world = await MachinesWorld.create({ seed: 1, replicas: 2 });
  await world.time.advance(10 * MINUTE_MS, () => isAsAsked(world));
  world.simulation.faults.set([{ method: 'DeleteMachine', effect: 'fail-after', code: 'Unavailable', times: 1 }]);
  world.simulation.driver.resetCalls();
  world.changePool({ spec: { replicas: 1 } });
  await world.time.advance(3 * MINUTE_MS, () => isAsAsked(world));

  expect({ vms: world.cloud.size, nodes: world.nodes.length, machines: world.machines.length }).toEqual({
    vms: 1,
    nodes: 1,
    machines: 1,
  });
  expect(world.simulation.driver.calls['DeleteMachine']).toBeLessThanOrEqual(4);
});
