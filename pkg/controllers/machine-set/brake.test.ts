import { expect, test } from '@jest/globals';

import { machineDeployment, machineSet } from '../../../test/builders.ts';
import { passOver, SetWorld } from '../../../test/fakes/replicas-world.ts';
import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { brake } from './controller.ts';

test.each([
  {
    what: 'of no MachineDeployment is frozen',
    isOwned: false,
    writes: ['machinesets/set-1/status', 'machinesets/set-1'],
  },
  { what: 'of a MachineDeployment is left to the controller of that', isOwned: true, writes: [] },
])('a set $what when it has created too much', async ({ isOwned, writes }) => {
  const deployment = machineDeployment();
  const set = machineSet((s) => {
    if (isOwned) s.metadata.ownerReferences = [controllerReference(deployment, API_VERSION, 'MachineDeployment')];
  });
  const deps = new SetWorld([set]);
  deps.machineDeployments.put(deployment);
  deps.brake.observe(set.metadata.uid, 1, 1);
  for (let i = 0; i < 100; i++) deps.brake.createdMachine(set.metadata.uid);

  await brake(deps).run({ ...passOver(set), machines: [] });

  expect(deps.client.writes.map(({ what }) => what)).toEqual(writes);
});
