import { expect, test } from '@jest/globals';

import { machineDeployment, machineSet } from '../../../test/builders.ts';
import { MemoryDeploymentParts } from '../../../test/machine-deployment-parts.ts';
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
  const parts = new MemoryDeploymentParts(deployment, { sets: [orphan] });
  const { namespace, name } = deployment.metadata;
  if (change === undefined) await parts.client.delete('report', machineDeployments, { namespace, name }, { uid: '' });
  else
    parts.client.put(
      machineDeployments,
      machineDeployment((d) => void Object.assign(d.metadata, change)),
    );
  parts.client.writes.splice(0);

  await claimSets(parts, deployment, signal);

  const { uid, resourceVersion } = orphan.metadata;
  expect(parts.client.writes).toMatchObject(adopts ? [{ what: 'machinesets/set-1', uid, resourceVersion }] : []);
});
