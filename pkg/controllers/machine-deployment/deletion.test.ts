import { expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet } from '../../../test/builders.ts';
import { DeploymentWorld } from '../../../test/fakes/replicas-world.ts';
import { MACHINE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';

const API_VERSION = 'machine.sapcloud.io/v1alpha1';
const going = machineDeployment((d) => {
  d.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  d.metadata.finalizers = ['example.com/other', MACHINE_FINALIZER];
});
const set = machineSet((s) => {
  s.metadata.resourceVersion = '5';
  s.metadata.ownerReferences = [controllerReference(going, API_VERSION, 'MachineDeployment')];
});
const owned = machine((m) => {
  m.metadata.ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
});

test('sets go first, as they were looked at, while the clusters of their Nodes are known to live', async () => {
  const deps = new DeploymentWorld(going, { sets: [set], machines: [owned] });

  expect(await deps.reconcile()).toMatchObject({ kind: 'stop' });

  const { uid, resourceVersion } = set.metadata;
  expect(deps.acts).toEqual([
    {
      verb: 'delete',
      intent: 'destroy',
      what: 'machinesets/set-1',
      uid,
      resourceVersion,
      clusters: ['target'],
      body: undefined,
    },
  ]);
});

test('a set that is going already is awaited, not deleted again', async () => {
  const ending = { ...set, metadata: { ...set.metadata, deletionTimestamp: 'now' } };
  const deps = new DeploymentWorld(going, { sets: [ending] });

  expect(await deps.reconcile()).toMatchObject({ kind: 'stop' });
  expect(deps.acts).toEqual([]);
});

test('without sets it is let go, and only as it was looked at', async () => {
  const deps = new DeploymentWorld(going);

  expect(await deps.reconcile()).toMatchObject({ kind: 'stop' });

  const { uid, resourceVersion } = going.metadata;
  const body = { metadata: { finalizers: ['example.com/other'] } };
  expect(deps.acts).toMatchObject([{ intent: 'change', uid, resourceVersion, body }]);
});

test('a deletion that spares its dependents waits for the garbage collector', async () => {
  const sparing = machineDeployment((d) => {
    Object.assign(d.metadata, { deletionTimestamp: 'now', finalizers: ['orphan', MACHINE_FINALIZER] });
  });
  const deps = new DeploymentWorld(sparing, { sets: [set] });

  expect(await deps.reconcile()).toMatchObject({ kind: 'stop' });
  expect(deps.acts).toEqual([]);
});
