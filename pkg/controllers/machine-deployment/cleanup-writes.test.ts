import { expect, test } from '@jest/globals';

import { machineDeployment, machineSet } from '../../../test/builders.ts';
import { MemoryDeploymentParts } from '../../../test/machine-deployment-parts.ts';
import { cleanUpSets } from './cleanup.ts';

test('an old set is deleted only as it was looked at', async () => {
  const parts = new MemoryDeploymentParts(machineDeployment());
  const old = machineSet((s) => {
    s.metadata.resourceVersion = '5';
    s.spec.replicas = 0;
    s.status.replicas = 0;
  });

  await cleanUpSets(parts, [{ set: old, machines: [] }], 0, new AbortController().signal);

  const { uid, resourceVersion } = old.metadata;
  expect(parts.client.writes).toMatchObject([{ verb: 'delete', intent: 'destroy', uid, resourceVersion }]);
});
