import { expect, test } from '@jest/globals';

import { machineDeployment, machineSet } from '../../../../test/builders.ts';
import { DeploymentWorld, passOver } from '../../../../test/fakes/replicas-world.ts';
import { cleanUpSets } from './cleanup.ts';

test('an old set is deleted only as it was looked at', async () => {
  const deployment = machineDeployment((d) => void (d.spec.revisionHistoryLimit = 0));
  const deps = new DeploymentWorld(deployment);
  const old = machineSet((s) => {
    s.metadata.resourceVersion = '5';
    s.spec.replicas = 0;
    s.status.replicas = 0;
  });

  const observed = { deployment, oldSets: [old], machinesOf: () => [] };
  await cleanUpSets(deps, { ...passOver(deployment), observed });

  const { uid, resourceVersion } = old.metadata;
  expect(deps.client.writes).toMatchObject([{ verb: 'delete', intent: 'destroy', uid, resourceVersion }]);
});
