import { expect, test } from '@jest/globals';

import { newMachineWorld } from '../../../test/fakes/new-machine-world.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';

const KEY = 'default/m-1';

test('what a pass starts for a Machine that vanishes meanwhile is not remembered forever', async () => {
  const world = newMachineWorld();
  world.hasTarget = false;
  const observed = world.machines.get(KEY) as Machine;
  const { uid } = observed.metadata;
  // Its finalizers were taken away by hand; the watch tells while the pass is on its way.
  world.whileSecrets = () => {
    world.machines.remove(KEY);
    world.controller.forget(observed);
    world.activities.forgetAll(KEY);
  };
  const { promise, resolve } = Promise.withResolvers<void>();
  world.driver.hold = promise;

  expect((await world.reconcile()).writes).toEqual([]);
  expect(world.activities.open()).toEqual([expect.objectContaining({ key: KEY, kind: 'create' })]);
  resolve();
  await world.settle();

  expect(world.activities.get(uid, 'create')).toBeUndefined();
  expect(world.driver.calls).toEqual(['status']);
});
