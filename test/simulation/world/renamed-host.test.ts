import { expect, test } from '@jest/globals';

import { nodeNameOf } from '../../../packages/providers/sim/vm.ts';
import { isAsAsked, MachinesWorld } from './machines-world.ts';

test('a machine whose host was renamed is replaced when what was its Node is not ready for long, and both Nodes go with it', async () => {
  await using world = await MachinesWorld.create({ seed: 1, replicas: 2 });
  await world.time.advance(600_000, () => isAsAsked(world));
  const [vm] = world.cloud.all();
  const names = (): readonly string[] => world.nodes.map(({ metadata }) => metadata.name);

  world.simulation.nodes?.rename(vm!, 'renamed');
  await world.time.advance(30_000);
  expect(names()).toEqual(expect.arrayContaining([vm!.machineName, 'renamed']));
  expect(world.cloud.named('renamed').map(nodeNameOf)).toEqual(['renamed']);

  await world.time.advance(1_800_000, () => isAsAsked(world) && world.nodes.length === 2);
  expect(isAsAsked(world)).toBe(true);
  expect(names()).not.toContain('renamed');
  expect(names()).not.toContain(vm!.machineName);
});
