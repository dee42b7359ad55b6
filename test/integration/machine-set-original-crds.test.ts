import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { ControlPlane } from '../../hack/control-plane/control-plane.ts';
import type { MachineDeployment } from '../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../pkg/apis/machine/v1alpha1/machine-set.ts';
import { machineDeployments, machineSets } from '../../pkg/kube/resource.ts';
import { BROKEN_OBJECTS } from '../broken-objects.ts';
import { forCreation } from '../builders.ts';
import { privateControlPlane } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineSetWorld } from './machine-set-world.ts';

let plane: ControlPlane;
beforeAll(async () => {
  plane = await privateControlPlane({ crds: 'original' });
});
afterAll(() => plane.stop());

test('under the original definitions a deployment is created, scaled, rolled and deleted', async () => {
  await using world = await MachineSetWorld.start({}, plane.connection);
  await world.createDeployment(3);
  await eventually(() => expect(world.running()).toHaveLength(3));
  await world.patch(machineDeployments, 'd', { spec: { replicas: 4 } });
  await eventually(() => expect(world.running()).toHaveLength(4));
  await world.patch(machineDeployments, 'd', {
    spec: { template: { spec: { class: { kind: 'MachineClass', name: 'c2' } } } },
  });
  await eventually(async () => {
    expect((await world.get(machineDeployments, 'd')).status).toMatchObject({ replicas: 4, updatedReplicas: 4 });
    expect(world.running().map(({ spec }) => spec.class?.name)).toEqual(['c2', 'c2', 'c2', 'c2']);
  });
  await world.delete(machineDeployments, 'd');
  await eventually(async () => expect(await world.list(machineDeployments)).toEqual([]));

  expect(world.machines.list()).toEqual([]);
});

test('a settled deployment is not written again, although the server prunes and defaults what it likes', async () => {
  await using world = await MachineSetWorld.start({}, plane.connection);
  await world.createDeployment(2, ({ spec }) => {
    spec.template.spec = {
      class: { kind: 'MachineClass', name: 'c' },
      nodeTemplate: { metadata: { labels: { a: '1' } }, spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } },
      drainTimeout: '1h',
    };
  });
  await eventually(async () => {
    const { status } = await world.get(machineDeployments, 'd');
    expect(status?.conditions?.map(({ reason }) => reason)).toContain('NewMachineSetAvailable');
  });
  const [failed] = world.running();
  await world.setPhase(failed?.metadata.name ?? '', 'Unknown', { type: 'HealthCheck', state: 'Failed' });
  await eventually(async () => {
    expect((await world.get(machineDeployments, 'd')).status?.failedMachines).toHaveLength(1);
  });
  await world.killManager();
  await world.startManager();
  // The new manager has looked at everything once it answers to a change.
  await world.patch(machineDeployments, 'd', { spec: { replicas: 3 } });
  await eventually(() => expect(world.machines.list()).toHaveLength(3));

  expect(world.manager.count('patch', 'machines')).toBe(0);
  expect(world.manager.count('patch', 'machinesets')).toBe(1);
});

test('a set that a changed selector strands is told of, on both objects, with its machines', async () => {
  await using world = await MachineSetWorld.start({}, plane.connection);
  await world.createDeployment(2);
  await eventually(() => expect(world.running()).toHaveLength(2));
  const [stranded] = await world.list(machineSets);
  const moved = { pool: null, other: 'd' };
  await world.patch(machineDeployments, 'd', {
    spec: { selector: { matchLabels: moved }, template: { metadata: { labels: moved } } },
  });

  await eventually(() => {
    const told = world.events.filter(({ reason }) => reason === 'ReleasedMachineSet');
    expect(told.map(({ object, type }) => [object.metadata.name, type])).toEqual([
      ['d', 'Warning'],
      [stranded?.metadata.name, 'Warning'],
    ]);
    for (const { message } of told)
      expect(message).toContain(`${stranded?.metadata.name}, which has been released with 2`);
  });
  await eventually(() => expect(world.running()).toHaveLength(4));
});

// Negative replicas are refused by the API server itself, because of the scale subresource.
const broken = BROKEN_OBJECTS.filter(
  ({ object, field }) =>
    (object.kind === 'MachineSet' || object.kind === 'MachineDeployment') && field !== 'spec.replicas',
);

test('whatever the original definitions store, nothing crashes: a condition tells what is wrong, deletion goes on', async () => {
  await using world = await MachineSetWorld.start({}, plane.connection);
  for (const [i, { object }] of broken.entries()) {
    const built = forCreation(object);
    const { metadata } = { ...built, metadata: { ...built.metadata, name: `x-${i}`, namespace: world.namespace.name } };
    // Broken on purpose: its type is only what the table was built from.
    if (object.kind === 'MachineSet') {
      await world.user.writer.create('create', machineSets, { ...(built as MachineSet), metadata });
    } else {
      await world.user.writer.create('create', machineDeployments, { ...(built as MachineDeployment), metadata });
    }
  }

  await eventually(
    async () => {
      const conditions = new Map<string, string | undefined>();
      for (const { metadata, status } of await world.list(machineSets)) {
        conditions.set(metadata.name, status?.machineSetCondition?.find(({ type }) => type === 'InvalidSpec')?.message);
      }
      for (const { metadata, status } of await world.list(machineDeployments)) {
        conditions.set(metadata.name, status?.conditions?.find(({ type }) => type === 'InvalidSpec')?.message);
      }
      const told = broken.map(({ message }, i) => [i, message, conditions.get(`x-${i}`)] as const);
      expect(told.filter(([, message, text]) => text?.includes(message) !== true)).toEqual([]);
    },
    { timeoutMs: 30_000 },
  );
  expect(broken.length).toBeGreaterThan(50);
  expect(world.machines.list()).toEqual([]);

  for (const [i, { object }] of broken.entries()) {
    if (object.kind === 'MachineSet') await world.delete(machineSets, `x-${i}`);
    else await world.delete(machineDeployments, `x-${i}`);
  }
  await eventually(async () => {
    expect(await world.list(machineSets)).toEqual([]);
    expect(await world.list(machineDeployments)).toEqual([]);
  });
});
