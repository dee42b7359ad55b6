import { expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet } from '../../../../test/builders.ts';
import { DeploymentWorld } from '../../../../test/fakes/replicas-world.ts';
import {
  LAST_SCALER_CHANGE_ANNOTATION,
  MARKED_FOR_DELETION_TIME_ANNOTATION,
  PRIORITY_ANNOTATION,
  TRIGGER_DELETION_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import { controllerReference } from '../../../work/reconcile/ownership.ts';
import { resizeSets } from './resize.ts';

const API_VERSION = 'machine.sapcloud.io/v1alpha1';
const TIME = '2026-01-01T00:00:01Z';
const signal = new AbortController().signal;

/** A set of two with its Machines; the autoscaler has named the first of them, or none. */
function scene(isNamed: boolean, isOld = false) {
  const deployment = machineDeployment((d) => {
    d.spec.replicas = 2;
    if (!isNamed) return;
    d.metadata.annotations = { [TRIGGER_DELETION_ANNOTATION]: `m-1~${TIME}`, [LAST_SCALER_CHANGE_ANNOTATION]: TIME };
  });
  const set = machineSet((s) => {
    s.spec.replicas = 2;
    if (isOld) s.spec.template.spec = { class: { kind: 'MachineClass', name: 'old' } };
    s.metadata.resourceVersion = '5';
    s.metadata.ownerReferences = [controllerReference(deployment, API_VERSION, 'MachineDeployment')];
  });
  const machines = ['m-1', 'm-2'].map((name) =>
    machine((m) => {
      m.metadata.name = name;
      m.metadata.ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
      if (!isNamed || name !== 'm-1') return;
      m.metadata.annotations = { [PRIORITY_ANNOTATION]: '1', [MARKED_FOR_DELETION_TIME_ANNOTATION]: TIME };
    }),
  );
  const deps = new DeploymentWorld(deployment, { sets: [set], machines });
  return { deps, set, observed: deps.observed(deployment) };
}

test.each([
  { title: 'shrinking destroys', to: 1, isNamed: false, intent: 'destroy', clusters: ['target'] },
  { title: 'growing does not', to: 3, isNamed: false, intent: 'change', clusters: [] },
  { title: 'telling of chosen machines destroys', to: 2, isNamed: true, intent: 'destroy', clusters: ['target'] },
])('$title, and each holds only for the set that was looked at', async ({ to, isNamed, intent, clusters }) => {
  const { deps, set, observed } = scene(isNamed);

  expect(await resizeSets(deps, observed, { sizes: new Map([['set-1', to]]), noted: ['set-1'] }, signal)).toBe(true);

  const { uid, resourceVersion } = set.metadata;
  expect(deps.client.writes).toMatchObject([{ intent, what: 'machinesets/set-1', uid, resourceVersion, clusters }]);
});

test.each([{ isOld: true }, { isOld: false }])(
  'a set (of an old template: $isOld) is told of its chosen machines in the write of its size',
  async ({ isOld }) => {
    const { deps, observed } = scene(true, isOld);

    await resizeSets(deps, observed, { sizes: new Map([['set-1', 1]]) }, signal);

    expect(deps.client.writes).toMatchObject([
      { body: { spec: { replicas: 1 }, metadata: { annotations: { [LAST_SCALER_CHANGE_ANNOTATION]: TIME } } } },
    ]);
  },
);

test('a set that counts moved Machines is not told of its chosen ones, whose replicas it does not give up', async () => {
  const { deps, observed } = scene(true);

  await resizeSets(deps, observed, { sizes: new Map([['set-1', 3]]), isCount: true }, signal);

  expect(deps.client.writes).toMatchObject([{ body: { spec: { replicas: 3 } } }]);
  expect(JSON.stringify(deps.client.writes)).not.toContain(LAST_SCALER_CHANGE_ANNOTATION);
});

test('an old set without a chosen machine is told of no change', async () => {
  const { deps, observed } = scene(false, true);

  await resizeSets(deps, observed, { sizes: new Map([['set-1', 1]]) }, signal);

  expect(JSON.stringify(deps.client.writes)).not.toContain(LAST_SCALER_CHANGE_ANNOTATION);
});

test('what has its size already is not written', async () => {
  const { deps, observed } = scene(false);

  expect(await resizeSets(deps, observed, { sizes: new Map([['set-1', 2]]) }, signal)).toBe(false);
  expect(deps.client.writes).toEqual([]);
});
