import { expect, test } from '@jest/globals';

import {
  DESIRED_REPLICAS_ANNOTATION,
  MACHINE_FINALIZER,
  MAX_REPLICAS_ANNOTATION,
  REVISION_ANNOTATION,
  REVISION_HISTORY_ANNOTATION,
  TEMPLATE_HASH_LABEL,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import type { MachineDeployment } from '../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../pkg/apis/machine/v1alpha1/machine-set.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { GateClosedError } from '../../pkg/kube/gate/gate.ts';
import { machineDeployments, machines, machineSets } from '../../pkg/kube/client/resource.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineSetWorld, TARGET } from './machine-set-world.ts';

const PATIENCE = { timeoutMs: 90_000 };
const labels = { pool: 'd' };

/** A template as a typed Go writer stores it: zeros and nulls where nothing was said. */
const goTemplate = (className: string, hash?: string): NonNullable<MachineSet['spec']['template']> => ({
  metadata: {
    creationTimestamp: null,
    labels: { ...labels, ...(hash === undefined ? {} : { [TEMPLATE_HASH_LABEL]: hash }) },
  },
  spec: {
    class: { kind: 'MachineClass', name: className },
    nodeTemplate: { metadata: { creationTimestamp: null, labels: { worker: 'a' } }, spec: {} },
  },
});

/** Stores a set of the original with its Machines; the stand-in for the machine controller lets them run. */
async function store(
  world: MachineSetWorld,
  owner: MachineDeployment,
  { revision, className, hash, replicas }: { revision: number; className: string; hash: string; replicas: number },
): Promise<MachineSet> {
  const namespace = world.namespace.name;
  const setLabels = { ...labels, [TEMPLATE_HASH_LABEL]: hash };
  const reference = { apiVersion: API_VERSION, controller: true, blockOwnerDeletion: true };
  const set = await world.user.writer.create('create', machineSets, {
    metadata: {
      name: `d-${hash.slice(0, 5)}`,
      namespace,
      labels: setLabels,
      finalizers: [MACHINE_FINALIZER],
      annotations: {
        [REVISION_ANNOTATION]: String(revision),
        [DESIRED_REPLICAS_ANNOTATION]: '3',
        [MAX_REPLICAS_ANNOTATION]: '4',
        ...(revision === 3 ? { [REVISION_HISTORY_ANNOTATION]: '1' } : {}),
      },
      ownerReferences: [{ ...reference, kind: 'MachineDeployment', name: 'd', uid: owner.metadata.uid }],
    },
    spec: { replicas, selector: { matchLabels: setLabels }, template: goTemplate(className, hash) },
  });
  for (let i = 0; i < replicas; i++) {
    const { spec, metadata } = goTemplate(className, hash) as unknown as Machine;
    await world.user.writer.create('create', machines, {
      metadata: {
        name: `${set.metadata.name}-${i}`,
        namespace,
        labels: { ...metadata.labels },
        finalizers: [MACHINE_FINALIZER],
        ownerReferences: [{ ...reference, kind: 'MachineSet', name: set.metadata.name, uid: set.metadata.uid }],
      },
      spec: { ...spec },
    });
  }
  return set;
}

test('a deployment of the original with its history is taken over as it is, and scaled and rolled back from there', async () => {
  await using world = await MachineSetWorld.start();
  await world.killManager();
  const deployment = await world.createDeployment(3, ({ metadata, spec }) => {
    metadata.annotations = { [REVISION_ANNOTATION]: '3' };
    metadata.finalizers = [MACHINE_FINALIZER];
    spec.template = goTemplate('c3');
    Object.assign(spec, { minReadySeconds: 0, paused: false, rollbackTo: null, revisionHistoryLimit: null });
  });
  await store(world, deployment, { revision: 1, className: 'c1', hash: '3141592653', replicas: 0 });
  await store(world, deployment, { revision: 2, className: 'c2', hash: '2718281828', replicas: 0 });
  await store(world, deployment, { revision: 3, className: 'c3', hash: '1618033988', replicas: 3 });
  await eventually(() => expect(world.running()).toHaveLength(3), PATIENCE);
  await world.startManager();
  await eventually(async () => {
    expect((await world.get(machineDeployments, 'd')).status).toMatchObject({
      updatedReplicas: 3,
      availableReplicas: 3,
    });
  }, PATIENCE);

  expect(world.manager.count('create', 'machinesets') + world.manager.count('create', 'machines')).toBe(0);
  expect(world.manager.count('delete', 'machines') + world.manager.count('delete', 'machinesets')).toBe(0);
  expect(world.manager.count('patch', 'machines')).toBe(0);
  expect(await world.list(machineSets)).toHaveLength(3);

  await world.patch(machineDeployments, 'd', { spec: { replicas: 4, rollbackTo: { revision: 2 } } });
  await eventually(() => {
    expect(world.running().map(({ spec }) => spec.class?.name)).toEqual(Array(4).fill('c2'));
    expect(world.machines.list()).toHaveLength(4);
  }, PATIENCE);
  expect(world.manager.count('create', 'machinesets')).toBe(0);
  expect((await world.get(machineSets, 'd-27182')).metadata.annotations).toMatchObject({
    [REVISION_ANNOTATION]: '4',
    [REVISION_HISTORY_ANNOTATION]: '2',
  });
});

test('an adopted set gets the hash label, on itself and on its machines, and loses none of them', async () => {
  await using world = await MachineSetWorld.start();
  await world.createSet(2, ({ metadata, spec }) => {
    metadata.labels = { ...labels };
    spec.selector = { matchLabels: { ...labels } };
    spec.template = { metadata: { labels: { ...labels } }, spec: { class: { kind: 'MachineClass', name: 'c' } } };
  });
  await eventually(() => expect(world.running()).toHaveLength(2), PATIENCE);
  const before = world.running().map(({ metadata }) => metadata.uid);
  await world.createDeployment(2);

  const set = await eventually(async () => {
    const adopted = await world.get(machineSets, 's');
    expect(adopted.spec.selector?.matchLabels?.[TEMPLATE_HASH_LABEL]).toMatch(/^\d+$/);
    return adopted;
  }, PATIENCE);
  const hash = set.spec.selector?.matchLabels?.[TEMPLATE_HASH_LABEL];
  expect(set.metadata.labels).toEqual({ ...labels, [TEMPLATE_HASH_LABEL]: hash });
  expect(set.spec.template?.metadata?.labels).toEqual({ ...labels, [TEMPLATE_HASH_LABEL]: hash });
  await world.patch(machineDeployments, 'd', { spec: { replicas: 3 } });
  await eventually(() => {
    expect(world.running()).toHaveLength(3);
    expect(world.machines.list().map(({ metadata }) => metadata.labels?.[TEMPLATE_HASH_LABEL])).toEqual([
      hash,
      hash,
      hash,
    ]);
  }, PATIENCE);
  expect(world.running().map(({ metadata }) => metadata.uid)).toEqual(expect.arrayContaining(before));
  expect(await world.list(machineSets)).toHaveLength(1);
});

test('while the target cluster cannot be seen nothing shrinks, but what is to go by force goes', async () => {
  await using world = await MachineSetWorld.start();
  await world.createDeployment(3);
  await eventually(() => expect(world.running()).toHaveLength(3), PATIENCE);
  await world.killManager();
  let refused = 0;
  await world.startManager({
    gate: {
      admit: async (intent, clusters) => {
        if (intent === 'destroy' && clusters.includes(TARGET)) {
          refused += 1;
          throw new GateClosedError('unproven', TARGET, 'no recent proof of life');
        }
        return await Promise.resolve({ remainingMs: Infinity, fencingToken: 0n });
      },
    },
  });
  await world.patch(machineDeployments, 'd', { spec: { replicas: 1 } });
  await eventually(() => refused > 2, PATIENCE);
  expect(world.living()).toHaveLength(3);
  expect((await world.list(machineSets)).map(({ spec }) => spec.replicas)).toEqual([3]);

  for (const { metadata } of world.living()) {
    await world.patch(machines, metadata.name, { metadata: { labels: { 'force-deletion': 'True' } } });
  }
  await eventually(() => expect(world.machines.list()).toHaveLength(1), PATIENCE);
  await world.delete(machineDeployments, 'd');
  await eventually(async () => expect(await world.list(machineDeployments)).toEqual([]), PATIENCE);
});
