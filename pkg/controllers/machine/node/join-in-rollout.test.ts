import { expect, test } from '@jest/globals';

import {
  machine,
  machineDeployment,
  machineSet,
  node,
  type BuiltMachine,
  type BuiltMachineSet,
} from '../../../../test/builders.ts';
import { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { API_VERSION } from '../../../apis/machine/v1alpha1/group.ts';
import { controllerReference } from '../../../work/reconcile/ownership.ts';

const HOLD = { 'cluster-autoscaler.kubernetes.io/scale-down-disabled': 'true' };
const HELD_BY_US = { ...HOLD, 'cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm': 'true' };

interface Case {
  readonly title: string;
  /** Replicas of the set of the old template, and whether it has a Machine. */
  readonly old?: { readonly replicas: number; readonly hasMachine: boolean; readonly sameTemplate?: boolean };
  readonly paused?: boolean;
  readonly isOff?: boolean;
  readonly joined?: Parameters<typeof node>[0];
  readonly want: object | undefined;
}

const ROLLING = { replicas: 1, hasMachine: true };

/** A Machine of the new template whose Node has just joined. */
function scene({ old, paused = false, isOff = false, joined }: Case): FakeWorld {
  const world = new FakeWorld();
  const deployment = machineDeployment((d) => {
    d.spec.paused = paused;
    d.spec.template = { spec: { class: { kind: 'MachineClass', name: 'new' } } };
  });
  const owned = (name: string, change: (s: BuiltMachineSet) => void) =>
    machineSet((s) => {
      Object.assign(s.metadata, { name, uid: `uid-of-${name}` });
      s.metadata.ownerReferences = [controllerReference(deployment, API_VERSION, 'MachineDeployment')];
      s.spec.template = structuredClone(deployment.spec.template);
      change(s);
    });
  const by = (set: BuiltMachineSet, name: string) =>
    machine((m: BuiltMachine) => {
      Object.assign(m.metadata, { name, uid: `uid-of-${name}` });
      m.metadata.labels['node'] = name;
      m.metadata.ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
    });
  const newSet = owned('new', (s) => void (s.spec.replicas = 1));
  const oldSet = owned('old', (s) => {
    s.spec.replicas = old?.replicas ?? 0;
    if (old?.sameTemplate !== true) s.spec.template = { spec: { class: { kind: 'MachineClass', name: 'old' } } };
  });
  world.owners.deployments.put(deployment);
  world.owners.sets.put(newSet);
  if (old !== undefined) world.owners.sets.put(oldSet);
  if (old?.hasMachine === true) world.machines.put(by(oldSet, 'm-0'));
  world.machines.put(by(newSet, 'm-1'));
  world.nodes.cache.put(node(joined));
  world.holdsScaleDown = !isOff;
  world.restart();
  return world;
}

test.each<Case>([
  { title: 'joins while machines are rolled', old: ROLLING, want: HELD_BY_US },
  { title: 'joins without a rollout', want: undefined },
  { title: 'joins beside an empty set', old: { replicas: 1, hasMachine: false }, want: undefined },
  { title: 'joins when the last old machines go', old: { replicas: 0, hasMachine: true }, want: undefined },
  { title: 'joins beside a set of the same template', old: { ...ROLLING, sameTemplate: true }, want: undefined },
  { title: 'joins while the rollout is paused', old: ROLLING, paused: true, want: undefined },
  { title: 'joins where nobody would take it back', old: ROLLING, isOff: true, want: undefined },
  {
    title: 'is held by somebody else',
    old: ROLLING,
    joined: (n) => Object.assign(n.metadata.annotations, HOLD),
    want: undefined,
  },
])('a Node that $title is kept from the autoscaler by its first patch: $want', async (row) => {
  const world = scene(row);

  await world.pass(world.only('node-sync'));

  const given = world.nodes.patches.map(({ metadata }) => (metadata as { annotations?: object }).annotations);
  expect(given).toEqual([row.want]);
});

test('a Node that was given its marks before is left to the MachineDeployment', async () => {
  const world = scene({
    title: '',
    old: ROLLING,
    want: undefined,
    joined: (n) => {
      n.metadata.finalizers = ['node.machine.sapcloud.io/machine-controller'];
      n.metadata.labels['node.gardener.cloud/machine-name'] = 'm-1';
    },
  });

  await world.pass(world.only('node-sync'));

  expect(world.nodes.patches).toEqual([]);
});

test('a Node of which a webhook refuses that is given everything else', async () => {
  const world = scene({ title: '', old: ROLLING, want: undefined });
  world.nodes.keepsPatches = true;
  world.nodes.refuses = (change) => 'annotations' in (change['metadata'] as object);

  await world.pass(world.only('node-sync'));

  const given = world.nodes.patches.map(({ metadata }) => Object.keys(metadata as object));
  expect(given.flat()).toEqual(expect.arrayContaining(['finalizers', 'labels']));
});
