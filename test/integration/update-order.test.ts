import { expect, test } from '@jest/globals';

import { UPDATE_ORDER_ANNOTATION, UPGRADE_INDEX_ANNOTATION } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeploymentCondition } from '../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import { isBeingDeleted } from '../../pkg/apis/meta.ts';
import { machineDeployments, machines } from '../../pkg/kube/client/resource.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineSetWorld } from './machine-set-world.ts';

const PATIENCE = { timeoutMs: 120_000 };
const CLASS_2 = { spec: { template: { spec: { class: { kind: 'MachineClass', name: 'c2' } } } } };

const pool = (name: string, order?: string): Parameters<MachineSetWorld['createDeployment']>[1] =>
  function named({ metadata, spec }) {
    metadata.name = name;
    if (order !== undefined) metadata.annotations = { [UPDATE_ORDER_ANNOTATION]: order };
    spec.selector = { matchLabels: { pool: name } };
    spec.template.metadata = { labels: { pool: name } };
  };

const condition = async (
  world: MachineSetWorld,
  name: string,
  type: string,
): Promise<MachineDeploymentCondition | undefined> =>
  (await world.get(machineDeployments, name)).status?.conditions?.find((one) => one.type === type);

const has = async (world: MachineSetWorld, name: string, reason: string): Promise<unknown> =>
  eventually(async () => expect(await condition(world, name, 'Progressing')).toMatchObject({ reason }), PATIENCE);

const classesOf = (world: MachineSetWorld, name: string): unknown[] =>
  world
    .running()
    .filter(({ metadata }) => metadata.labels?.['pool'] === name)
    .map(({ spec }) => spec.class?.name);

// promise: order-updates/machinedeployments-group-rolled-out
// promise: openstack/upgrades/workers-wait-last-three
test('machine deployments of one group are rolled out one after the other, and scale meanwhile', async () => {
  let left = 2;
  /** Of the control plane the third new machine is stuck. */
  const comesUp = ({ spec, metadata }: Machine): boolean =>
    spec.class?.name !== 'c2' || metadata.labels?.['pool'] !== 'cp' || left-- > 0;
  await using world = await MachineSetWorld.start({ comesUp });
  await world.createDeployment(3, pool('cp', 'g/0'));
  await world.createDeployment(2, pool('all', 'g/1'));
  await world.createDeployment(1, pool('free'));
  for (const name of ['cp', 'all', 'free']) await has(world, name, 'NewMachineSetAvailable');

  await world.patch(machineDeployments, 'cp', { spec: { paused: true } });
  for (const name of ['cp', 'all', 'free']) await world.patch(machineDeployments, name, CLASS_2);
  await eventually(async () => {
    const { reason, message } = (await condition(world, 'all', 'Progressing')) ?? {};
    expect({ reason, message }).toMatchObject({
      reason: 'WaitingForUpdateOrder',
      message: expect.stringContaining('MachineDeployment cp (paused),'),
    });
  }, PATIENCE);
  await has(world, 'free', 'NewMachineSetAvailable');
  await eventually(() => expect(classesOf(world, 'cp')).toEqual(['c', 'c', 'c']), PATIENCE);

  await world.patch(machineDeployments, 'cp', { spec: { paused: null } });
  await eventually(() => {
    expect(classesOf(world, 'cp').filter((name) => name === 'c2')).toHaveLength(2);
    expect(world.living().some(({ status }) => status?.currentStatus?.phase !== 'Running')).toBe(true);
  }, PATIENCE);
  expect(classesOf(world, 'all')).toEqual(['c', 'c']);
  await eventually(async () => {
    expect(await condition(world, 'all', 'Progressing')).toMatchObject({
      status: 'Unknown',
      message: expect.stringMatching(/the rollout of MachineDeployment cp,.*update-order requires\. To start now/),
    });
  }, PATIENCE);
  await world.patch(machineDeployments, 'all', { spec: { replicas: 3 } });
  await eventually(() => expect(classesOf(world, 'all')).toEqual(['c', 'c', 'c']), PATIENCE);

  left = Infinity;
  await eventually(async () => {
    for (const one of world.living().filter(({ status }) => status?.currentStatus?.phase !== 'Running')) {
      await world.bringUp(one);
    }
    expect(classesOf(world, 'all')).toEqual(['c2', 'c2', 'c2']);
  }, PATIENCE);
  await has(world, 'all', 'NewMachineSetAvailable');
  expect(classesOf(world, 'cp')).toEqual(['c2', 'c2', 'c2']);
});

// promise: order-updates/first-rollout-begins-updated
// promise: openstack/upgrades/first-workers-begin
test('an order that waits for the first begins after one machine; one that means nothing is told of and holds nothing up', async () => {
  await using world = await MachineSetWorld.start({ goes: ({ metadata }) => metadata.labels?.['pool'] !== 'cp' });
  await world.createDeployment(2, pool('cp', 'g/0'));
  await world.createDeployment(1, pool('first', 'g/1/first'));
  await world.createDeployment(1, pool('all', 'g/1'));
  await world.createDeployment(1, pool('wrong', 'g/one'));
  for (const name of ['cp', 'first', 'all', 'wrong']) await has(world, name, 'NewMachineSetAvailable');
  expect(await condition(world, 'wrong', 'InvalidAnnotation')).toMatchObject({
    status: 'True',
    message: expect.stringContaining('update-order of the MachineDeployment is "g/one"'),
  });

  // The old machines of cp never go, so that its rollout never ends.
  for (const name of ['cp', 'first', 'all', 'wrong']) await world.patch(machineDeployments, name, CLASS_2);
  await eventually(() => expect(classesOf(world, 'first')).toEqual(['c2']), PATIENCE);
  await eventually(() => expect(classesOf(world, 'wrong')).toEqual(['c2']), PATIENCE);
  expect(classesOf(world, 'all')).toEqual(['c']);
  await has(world, 'all', 'WaitingForUpdateOrder');

  await world.patch(machineDeployments, 'all', { metadata: { annotations: { [UPDATE_ORDER_ANNOTATION]: null } } });
  await eventually(() => expect(classesOf(world, 'all')).toEqual(['c2']), PATIENCE);
});

// promise: order-updates/begun-stands-still
// promise: openstack/upgrades/control-plane-first-patched-later
test('a rollout that has begun stands still while one of a smaller index is rolled out, and goes on then', async () => {
  const stuck = new Set(['all']);
  const comesUp = ({ spec, metadata }: Machine): boolean =>
    spec.class?.name !== 'c2' || !stuck.has(metadata.labels?.['pool'] ?? '');
  await using world = await MachineSetWorld.start({ comesUp });
  await world.createDeployment(1, pool('cp', 'g/0'));
  await world.createDeployment(3, pool('all', 'g/1'));
  for (const name of ['cp', 'all']) await has(world, name, 'NewMachineSetAvailable');
  const bringUp = async (name: string): Promise<void> => {
    stuck.delete(name);
    await eventually(async () => {
      const ofPool = world.living().filter(({ metadata }) => metadata.labels?.['pool'] === name);
      const late = ofPool.filter(({ status }) => status?.currentStatus?.phase !== 'Running');
      for (const one of late) await world.bringUp(one);
      expect(late).toEqual([]);
    }, PATIENCE);
  };

  await world.patch(machineDeployments, 'all', CLASS_2);
  await eventually(() => expect(world.living().some(({ spec }) => spec.class?.name === 'c2')).toBe(true), PATIENCE);
  stuck.add('cp');
  await world.patch(machineDeployments, 'cp', CLASS_2);
  await eventually(async () => {
    expect(await condition(world, 'all', 'Progressing')).toMatchObject({
      reason: 'WaitingForUpdateOrder',
      message: expect.stringMatching(/the rollout of MachineDeployment cp,.*To continue now, change the annotation/),
    });
  }, PATIENCE);
  const early: string[] = [];
  let isReleased = false;
  world.machines.onChange((old, current) => {
    const isOfWorkers = current?.metadata.labels?.['pool'] === 'all' && current.spec.class?.name === 'c';
    const isNews = current !== undefined && isBeingDeleted(current) && (old === undefined || !isBeingDeleted(old));
    if (isOfWorkers && isNews && !isReleased) early.push(current.metadata.name);
  });
  await bringUp('all');
  await has(world, 'all', 'WaitingForUpdateOrder');
  expect(classesOf(world, 'all')).toContain('c');

  isReleased = true;
  await bringUp('cp');
  await eventually(() => expect(classesOf(world, 'all')).toEqual(['c2', 'c2', 'c2']), PATIENCE);

  expect(early).toEqual([]);
  await has(world, 'all', 'NewMachineSetAvailable');
});

// promise: order-updates/rollout-replaces-machines-old
// promise: openstack/upgrades/machines-replaced-index
test('the machines of a rollout are replaced in the order of their upgrade index', async () => {
  await using world = await MachineSetWorld.start();
  await world.createDeployment(4, (deployment) => {
    pool('d')?.(deployment);
    deployment.spec.strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } };
  });
  await has(world, 'd', 'NewMachineSetAvailable');
  await eventually(() => expect(classesOf(world, 'd')).toHaveLength(4), PATIENCE);
  for (const [i, { metadata }] of world.running().toSorted(byName).entries()) {
    const value = String(4 - i);
    await world.patch(machines, metadata.name, { metadata: { annotations: { [UPGRADE_INDEX_ANNOTATION]: value } } });
  }
  const wanted = world
    .running()
    .toSorted(byName)
    .map(({ metadata }) => metadata.name)
    .toReversed();
  const gone: string[] = [];
  world.machines.onChange((old, current) => {
    const isNews = current !== undefined && isBeingDeleted(current) && (old === undefined || !isBeingDeleted(old));
    if (isNews) gone.push(current.metadata.name);
  });

  await world.patch(machineDeployments, 'd', CLASS_2);
  await eventually(() => expect(classesOf(world, 'd')).toEqual(['c2', 'c2', 'c2', 'c2']), PATIENCE);

  expect(gone).toEqual(wanted);
});

function byName(a: Machine, b: Machine): number {
  return a.metadata.name < b.metadata.name ? -1 : 1;
}
