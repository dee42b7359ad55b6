import { expect, test } from '@jest/globals';

import { machineDeployment, machineSet } from '../../../test/builders.ts';
import { MemoryDeploymentDeps } from '../../../test/machine-deployment-deps.ts';
import { machineDeployments } from '../../kube/resource.ts';
import { claimSets } from './claim.ts';

const signal = new AbortController().signal;
const deployment = machineDeployment();
const orphan = machineSet();

test.each([
  { live: 'as it was seen', change: {}, adopts: true },
  { live: 'being deleted', change: { deletionTimestamp: 'now' }, adopts: false },
  { live: 'another one', change: { uid: 'of another' }, adopts: false },
  { live: 'gone', change: undefined, adopts: false },
])('a MachineDeployment that is $live, read live, adopts: $adopts', async ({ change, adopts }) => {
  const deps = new MemoryDeploymentDeps(deployment, { sets: [orphan] });
  const { namespace, name } = deployment.metadata;
  if (change === undefined) await deps.client.delete('report', machineDeployments, { namespace, name }, { uid: '' });
  else
    deps.client.put(
      machineDeployments,
      machineDeployment((d) => void Object.assign(d.metadata, change)),
    );
  deps.client.writes.splice(0);

  await claimSets(deps, deployment, signal);

  const { uid, resourceVersion } = orphan.metadata;
  expect(deps.client.writes).toMatchObject(adopts ? [{ what: 'machinesets/set-1', uid, resourceVersion }] : []);
});
