import { expect, test } from '@jest/globals';

import { machineDeployment } from '../../../../test/builders.ts';
import { DeploymentWorld } from '../../../../test/fakes/replicas-world.ts';
import { CHANGED_ON_CREATION_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { machineSets } from '../../../kube/client/resource.ts';
import { createNewSet, newSetFor } from './create-set.ts';

const signal = new AbortController().signal;
const deployment = machineDeployment();
const wanted = newSetFor(deployment, [], 1);
const ANOTHER = { apiVersion: 'x/v1', kind: 'X', name: 'x', uid: 'of another', controller: true };
const taken = new ApiError(409, 'AlreadyExists', 'taken');

/** Creates while the name is taken by this set. */
async function createOver(holder: typeof wanted) {
  const deps = new DeploymentWorld(deployment);
  const metadata = { ...wanted.metadata, ...holder.metadata, uid: 'of the set', resourceVersion: '3' };
  deps.client.put(machineSets, { ...holder, metadata: { creationTimestamp: '', ...metadata } });
  deps.client.failures.push(taken);
  const set = await createNewSet(deps, deployment, [], 1, signal);
  return { deps, set };
}

test('a set that was made by a POST whose answer was lost is taken', async () => {
  const { deps, set } = await createOver(wanted);

  expect(set?.metadata.uid).toBe('of the set');
  expect(deps.machineSets.list()).toHaveLength(1);
  expect(deps.client.writes).toHaveLength(1);
});

test.each([
  {
    title: 'is of another MachineDeployment',
    holder: { ...wanted, metadata: { ...wanted.metadata, ownerReferences: [ANOTHER] } },
  },
  { title: 'has another template', holder: { ...wanted, spec: { ...wanted.spec, template: {} } } },
])('a set of that name that $title is a collision: the next pass tries another name', async ({ holder }) => {
  const { deps, set } = await createOver(holder);

  expect(set).toBeUndefined();
  expect(deps.client.writes.at(-1)).toMatchObject({
    what: 'machinedeployments/deployment-1/status',
    body: { status: { collisionCount: 1 } },
  });
});

test.each([
  { what: 'is noted', refusal: [] },
  { what: 'is one all the same when the note is refused', refusal: [new ApiError(403, 'Forbidden', 'by a webhook')] },
])('a set that was changed on its creation $what: the next pass tries another name', async ({ refusal }) => {
  const metadata = { creationTimestamp: '', ...wanted.metadata, uid: 'of the set', resourceVersion: '3' };
  const changed = { ...wanted, metadata, spec: { ...wanted.spec, template: {} } };
  const deps = new DeploymentWorld(deployment, { sets: [changed] });
  deps.client.failures.push(taken, ...refusal);

  await createNewSet(deps, deployment, [], 1, signal);

  const annotations = deps.machineSets.list()[0]?.metadata.annotations ?? {};
  expect(annotations[CHANGED_ON_CREATION_ANNOTATION]).toBe(refusal.length === 0 ? 'true' : undefined);
  expect(deps.client.writes.at(-1)).toMatchObject({ body: { status: { collisionCount: 1 } } });
});

test('a set of that name that somebody let go is no collision: the next pass takes it back', async () => {
  const { deps, set } = await createOver({ ...wanted, metadata: { ...wanted.metadata, ownerReferences: [] } });

  expect(set).toBeUndefined();
  expect(deps.client.writes).toHaveLength(1);
});

test.each([
  { failure: new ApiError(403, 'Forbidden', 'no'), events: 1 },
  { failure: new GateClosedError('outage', 'control', 'no'), events: 0 },
])('a creation that fails with $failure is told in $events Events', async ({ failure, events }) => {
  const deps = new DeploymentWorld(deployment);
  deps.client.failures.push(failure);

  await expect(createNewSet(deps, deployment, [], 1, signal)).rejects.toBe(failure);
  expect(deps.events).toHaveLength(events);
});
