import { describe, expect, test } from '@jest/globals';

import {
  MACHINE_NAME_LABEL,
  PRIORITY_ANNOTATION,
  TRIGGER_DELETION_ANNOTATION,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import { machineDeployments, machineSets, machines, nodes } from '../../pkg/kube/client/resource.ts';
import { eventually } from '../expect/eventually.ts';
import { GardenerFork, type Generation } from './gardener-fork.ts';
import { MachineSetWorld } from './machine-set-world.ts';
import { MachineWorld } from './machine-world.ts';

const PATIENCE = { timeoutMs: 120_000 };
const HELD = 'cluster-autoscaler.kubernetes.io/scale-down-disabled';

const names = (world: MachineSetWorld): string[] =>
  world
    .running()
    .map(({ metadata }) => metadata.name)
    .toSorted();

/** In the order in which they would go if nobody had chosen; those that are chosen here are the last. */
const oldestFirst = (world: MachineSetWorld): string[] =>
  world
    .running()
    .map(({ metadata: { creationTimestamp, name } }) => ({ creationTimestamp, name }))
    .toSorted((a, b) => (`${a.creationTimestamp} ${a.name}` < `${b.creationTimestamp} ${b.name}` ? -1 : 1))
    .map(({ name }) => name);

/** What the fork needs, and what its old generations do not know. */
const forFork = ({ spec }: Pick<MachineDeployment, 'spec'>): void => {
  spec.template.metadata = { ...spec.template.metadata, labels: { ...spec.template.metadata?.labels, name: 'd' } };
  spec.template.spec = { ...spec.template.spec, disableHealthTimeout: true, machinePreserveTimeout: '1h' };
  spec.autoPreserveFailedMachineMax = 1;
};

/** Waits until `replicas` Machines run and none is going, and the fork sees that no rollout is on. */
async function settled(world: MachineSetWorld, fork: GardenerFork, replicas: number): Promise<string[]> {
  await eventually(() => {
    expect(world.running()).toHaveLength(replicas);
    expect(world.machines.list()).toHaveLength(replicas);
    expect(fork.instances()).toHaveLength(replicas);
    expect(fork.isRolling()).toBe(false);
    expect(new Set(names(world).map((name) => fork.groupOf(name)))).toEqual(new Set(replicas === 0 ? [] : ['d']));
  }, PATIENCE);
  return names(world);
}

/** The next update of the fork is of an object that somebody else has changed. */
function overtake(world: MachineSetWorld, fork: GardenerFork): void {
  fork.beforeUpdate = async () => {
    fork.beforeUpdate = async () => undefined;
    const other = String(fork.conflicts);
    await world.patch(machineDeployments, 'd', { metadata: { annotations: { other } } });
    for (const name of names(world)) await world.patch(machines, name, { metadata: { annotations: { other } } });
  };
}

describe("Gardener's cluster-autoscaler", () => {
  test.each<{ generation: Generation }>([
    { generation: 'G1' },
    { generation: 'G2' },
    { generation: 'G3' },
    { generation: 'G4' },
  ])(
    'of generation $generation gets the Machines that it asks for, and loses those that it names',
    async ({ generation }) => {
      await using world = await MachineSetWorld.start({ withNodes: true });
      await world.createDeployment(2, forFork);
      await using fork = await GardenerFork.start(generation, world.connection, world.namespace.name);
      await settled(world, fork, 2);

      overtake(world, fork);
      await fork.increase(2);
      await settled(world, fork, 4);
      const [first = '', second = '', third = '', fourth = ''] = oldestFirst(world);
      overtake(world, fork);
      await fork.delete(second, third);
      expect(await settled(world, fork, 2)).toEqual([first, fourth].toSorted());
      expect(fork.conflicts).toBeGreaterThan(1);

      // A size of 0 is left out by Go.
      await fork.delete(first, fourth);
      await settled(world, fork, 0);

      await eventually(async () => {
        const { metadata, spec, status } = await world.get(machineDeployments, 'd');
        expect(spec.replicas).toBe(0);
        expect(Object.keys(metadata.annotations ?? {})).not.toContain(TRIGGER_DELETION_ANNOTATION);
        expect(status?.observedGeneration).toBe(metadata.generation);
      }, PATIENCE);
      expect(await world.list(machineSets)).toHaveLength(1);
      expect(world.succeeded('create', 'machines')).toBe(4);
      expect(world.succeeded('delete', 'machines')).toBe(4);
    },
  );

  test('of generation G2 that ended between its two writes takes its mark back, and another Machine goes', async () => {
    await using world = await MachineSetWorld.start({ withNodes: true });
    await world.createDeployment(3, forFork);
    const before = await GardenerFork.start('G2', world.connection, world.namespace.name);
    await settled(world, before, 3);
    const [marked = '', other = '', chosen = ''] = oldestFirst(world);
    await before.mark(marked);
    await before[Symbol.asyncDispose]();

    await using fork = await GardenerFork.start('G2', world.connection, world.namespace.name);
    await fork.refresh();
    expect((await world.get(machines, marked)).metadata.annotations?.[PRIORITY_ANNOTATION]).toBe('3');
    await fork.delete(chosen);

    expect(await settled(world, fork, 2)).toEqual([marked, other].toSorted());
  });

  test.each<{ generation: Generation }>([{ generation: 'G3' }, { generation: 'G4' }])(
    'of generation $generation that is started again names a Machine again, and it goes once, whenever the manager comes',
    async ({ generation }) => {
      await using world = await MachineSetWorld.start({ withNodes: true });
      await world.createDeployment(3, forFork);
      const before = await GardenerFork.start(generation, world.connection, world.namespace.name);
      await settled(world, before, 3);
      const [first = '', second = '', chosen = ''] = oldestFirst(world);
      const others = [first, second].toSorted();
      await world.killManager();
      await before.delete(chosen);
      await before[Symbol.asyncDispose]();

      await using fork = await GardenerFork.start(generation, world.connection, world.namespace.name);
      await fork.delete(chosen);
      await world.startManager();

      await eventually(() => expect(names(world)).toEqual(others), PATIENCE);
      expect(await settled(world, fork, 2)).toEqual(others);
    },
  );

  test('sees a rollout, and Nodes that it must leave alone before the first old Machine goes', async () => {
    await using world = await MachineSetWorld.start({ withNodes: true });
    await world.createDeployment(3, forFork);
    await using fork = await GardenerFork.start('G4', world.connection, world.namespace.name);
    const old = await settled(world, fork, 3);
    await world.killManager();
    const seen: { unheld: number; isRolling: boolean }[] = [];
    await world.startManager({
      intercept: async ({ text }, send) => {
        const [verb, resource, name = ''] = text.split(' ');
        if (verb === 'DELETE' && resource === 'machines' && old.includes(name.split('/').at(-1) ?? '')) {
          const list = (await world.user.reader.list(nodes, { labelSelector: `world=${world.namespace.name}` })).items;
          const living = list.filter(({ metadata }) => old.includes(metadata.name));
          const unheld = living.filter(({ metadata }) => metadata.annotations?.[HELD] !== 'true').length;
          seen.push({ unheld, isRolling: fork.isRolling() });
        }
        return send();
      },
    });

    await world.patch(machineDeployments, 'd', {
      spec: { template: { spec: { class: { kind: 'MachineClass', name: 'c2' } } } },
    });
    await eventually(() => expect(names(world).filter((name) => old.includes(name))).toEqual([]), PATIENCE);
    await settled(world, fork, 3);

    expect(seen.length).toBeGreaterThanOrEqual(old.length);
    expect(seen).toEqual(seen.map(() => ({ unheld: 0, isRolling: true })));
  });

  test('is told why there is no VM, and knows a Machine by the id of its Node', async () => {
    await using world = await MachineWorld.open();
    await using fork = await GardenerFork.start('G4', world.connection, world.namespace);
    const labelled = ({ metadata }: { metadata: { labels: Record<string, string> } }): unknown =>
      Object.assign(metadata.labels, { name: 'd' });
    const joined = await world.create(labelled);
    await eventually(async () => {
      const [node] = world.nodes.list().filter(({ metadata }) => metadata.labels?.[MACHINE_NAME_LABEL] === joined);
      const ref = { namespace: world.namespace, name: joined };
      const { providerID = '' } = (await world.user.reader.get(machines, ref)).spec;
      expect(providerID).not.toBe('');
      expect(node?.spec?.providerID?.split('/').at(-1)).toBe(providerID.split('/').at(-1));
      expect(fork.instances()).toEqual([{ id: node?.spec?.providerID }]);
    }, PATIENCE);

    world.cloud.faults.set([
      { method: 'CreateMachine', effect: 'fail', code: 'ResourceExhausted', message: 'no more of them' },
    ]);
    const id = `requested://${await world.create(labelled)}`;
    const error = { code: 'ResourceExhausted', message: expect.stringContaining('no more of them') };
    await eventually(() => expect(fork.instances()).toContainEqual({ id, state: 'creating', error }), PATIENCE);
  });
});
