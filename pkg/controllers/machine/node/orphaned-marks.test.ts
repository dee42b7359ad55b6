import { expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet, node } from '../../../../test/builders.ts';
import { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { API_VERSION } from '../../../apis/machine/v1alpha1/group.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { controllerReference } from '../../../work/reconcile/ownership.ts';

const TAINT = { key: 'deployment.machine.sapcloud.io/prefer-no-schedule', value: 'True', effect: 'PreferNoSchedule' };

/** A Machine of a set, of a MachineDeployment or not, whose Node a rollout has tainted. */
function scene(isOwned: boolean): FakeWorld {
  const world = new FakeWorld();
  const set = machineSet((s) => {
    s.metadata.ownerReferences = isOwned
      ? [controllerReference(machineDeployment(), API_VERSION, 'MachineDeployment')]
      : [];
  });
  world.owners.sets.put(set);
  world.machines.put(
    machine((m) => {
      m.metadata.name = 'm-1';
      m.metadata.labels['node'] = 'm-1';
      m.metadata.ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
    }),
  );
  world.nodes.keepsPatches = true;
  world.nodes.cache.put(
    node((n) => {
      n.metadata.name = 'm-1';
      n.spec.taints = [TAINT];
    }),
  );
  world.restart();
  return world;
}

test.each([
  { title: 'goes from the Node of a Machine that no MachineDeployment owns', isOwned: false, left: 0, patches: 1 },
  { title: 'stays on the Node of one that has one', isOwned: true, left: 1, patches: 0 },
])('the taint of a rollout $title', async ({ isOwned, left, patches }) => {
  const world = scene(isOwned);

  await world.pass(world.only('orphaned-marks'));
  await world.pass(world.only('orphaned-marks'));

  expect(world.nodes.cache.list()[0]?.spec?.taints ?? []).toHaveLength(left);
  expect(world.nodes.patches).toHaveLength(patches);
});

test('a Node that has changed since is written as it is, and another of its name is not', async () => {
  const world = scene(false);
  const mine = { key: 'example.com/mine', effect: 'NoSchedule' };
  const live = (uid?: string) =>
    node((n) => {
      Object.assign(n.metadata, world.nodes.cache.get('m-1')?.metadata, { resourceVersion: '7', ...(uid && { uid }) });
      n.spec.taints = [TAINT, mine];
    });
  world.nodes.live.set('m-1', live('another'));
  await world.pass(world.only('orphaned-marks'));
  expect(world.nodes.patches).toEqual([]);

  world.nodes.live.set('m-1', live());
  await world.pass(world.only('orphaned-marks'));
  expect(world.nodes.patches).toEqual([{ metadata: { resourceVersion: '7' }, spec: { taints: [mine] } }]);
});

test('a Node that is being deleted is left alone', async () => {
  const world = scene(false);
  const deletionTimestamp = '2026-01-01T00:00:00Z';
  world.nodes.cache.put(
    node((n) => {
      Object.assign(n.metadata, world.nodes.cache.get('m-1')?.metadata, { deletionTimestamp, resourceVersion: '7' });
      n.spec.taints = [TAINT];
    }),
  );

  await world.pass(world.only('orphaned-marks'));

  expect(world.nodes.patches).toEqual([]);
});

test('a Node that refuses is tried again later, and holds up nothing', async () => {
  const world = scene(false);
  world.nodes.refuses = () => true;

  const { result } = await world.pass(world.only('orphaned-marks'));

  expect(result).toMatchObject({ kind: 'requeue', afterMs: 300_000 });
  expect(world.warnings).toHaveLength(1);
});

test('a server that fails ends the pass, which is repeated', async () => {
  const world = scene(false);
  world.nodes.failure = new ApiError(500, 'InternalError', 'no');

  expect(await world.pass(world.only('orphaned-marks'))).toMatchObject({ error: world.nodes.failure });
});
