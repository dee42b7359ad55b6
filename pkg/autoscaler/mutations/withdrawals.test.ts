import { expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet, node } from '../../../test/builders.ts';
import { DeploymentWorld } from '../../../test/fakes/replicas-world.ts';
import { membershipOf, nodeGroup } from '../../../test/node-group.ts';
import { replicasOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import { FREEZE_LABEL, MACHINE_FINALIZER, REVISION_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeploymentStrategy } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { missingPlaceholder } from '../placeholder.ts';
import { Places } from '../places.ts';
import { RunningChanges } from '../running-changes.ts';
import { mutations } from './index.ts';

const GROUP = nodeGroup({ min: 0, max: 20 });
const CALL = { peer: 'test', signal: new AbortController().signal, leftMs: () => 30_000, report: () => undefined };

interface Start {
  readonly strategy: MachineDeploymentStrategy;
  readonly replicas: number;
  /** Of the old set, whose Machines work, and of the new one, which gets none. */
  readonly sizes: readonly [old: number, now: number];
  readonly isFrozen?: boolean;
}

/** A rollout whose new Machines never come, and an autoscaler that takes back what does not come. */
class StuckRollout {
  readonly #world: DeploymentWorld;
  readonly #places = new Places('x');
  readonly #mutations: ReturnType<typeof mutations>;

  constructor({ strategy, replicas, sizes, isFrozen = false }: Start) {
    const owner = machineDeployment(({ metadata, spec }) => {
      metadata.finalizers = [MACHINE_FINALIZER];
      metadata.annotations = { [REVISION_ANNOTATION]: '2' };
      if (isFrozen) metadata.labels = { ...metadata.labels, [FREEZE_LABEL]: 'True' };
      Object.assign(spec, { replicas, strategy });
    });
    const [old, now] = (['old', 'now'] as const).map((name, i) =>
      machineSet(({ metadata, spec }) => {
        Object.assign(metadata, { name, uid: name });
        metadata.ownerReferences = [controllerReference(owner, API_VERSION, 'MachineDeployment')];
        metadata.annotations = {
          [REVISION_ANNOTATION]: String(i + 1),
          'deployment.kubernetes.io/desired-replicas': String(replicas),
          'deployment.kubernetes.io/max-replicas': String(replicas),
        };
        spec.replicas = sizes[i] ?? 0;
        if (name === 'old') spec.template.spec = { class: { kind: 'MachineClass', name: 'class-0' } };
      }),
    ) as [ReturnType<typeof machineSet>, ReturnType<typeof machineSet>];
    const names = Array.from({ length: sizes[0] }, (_, i) => `m-${i}`);
    const machines = names.map((name) =>
      machine(({ metadata }) => {
        Object.assign(metadata, { name, uid: name, labels: { ...metadata.labels, pool: 'a', node: name } });
        metadata.ownerReferences = [controllerReference(old, API_VERSION, 'MachineSet')];
      }),
    );
    const nodes = names.map((name) => node(({ metadata }) => void Object.assign(metadata, { name, uid: name })));
    const world = new DeploymentWorld(owner, { sets: [now, old], machines, nodes });
    this.#world = world;
    this.#mutations = mutations({
      machineDeployments: world.machineDeployments,
      machineSets: world.machineSets,
      machines: world.machines,
      reader: world.reader,
      writer: world.writer,
      targets: world.targets,
      clock: world.clock,
      membership: membershipOf(world),
      places: this.#places,
      recorder: { event: () => undefined },
      changes: new RunningChanges(),
    });
  }

  get working(): number {
    return this.#world.machines.list().length;
  }

  get replicas(): number {
    return replicasOf(this.#deployment);
  }

  /** The controllers do what there is to do; Machines that an old set gives up are gone at once. */
  async settle(): Promise<void> {
    const { machines, machineSets, nodes } = this.#world;
    for (let i = 0; i < 20; i++) {
      const { result } = await this.#world.pass();
      if (result instanceof Error) throw result;
      for (const { metadata } of machines.list().slice(replicasOf(machineSets.get('default/old') ?? {}))) {
        machines.remove(`default/${metadata.name}`);
        nodes.remove(metadata.name);
      }
    }
  }

  increase(delta: number): Promise<unknown> {
    return this.#mutations.increase(GROUP, delta, CALL);
  }

  decrease(): Promise<unknown> {
    return this.#mutations.decrease(GROUP, -1, CALL);
  }

  /** `count` replicas without a Machine, or as many as there are. */
  withdraw(count: number): Promise<unknown> {
    const places = this.#places.see(this.#deployment.metadata.uid, Math.max(0, this.replicas - this.working));
    const nodes = places.slice(0, count).map((place) => {
      const id = missingPlaceholder(GROUP.id, place);
      return { providerId: id, name: id };
    });
    return this.#mutations.delete(GROUP, nodes, CALL);
  }

  get #deployment() {
    const [deployment] = this.#world.machineDeployments.list();
    if (deployment === undefined) throw new Error('it is gone');
    return deployment;
  }
}

const rolling = (maxSurge: number, maxUnavailable: number): MachineDeploymentStrategy => ({
  type: 'RollingUpdate',
  rollingUpdate: { maxSurge, maxUnavailable },
});
const inPlace = (orchestrationType: 'Auto' | 'Manual', maxSurge: number): MachineDeploymentStrategy => ({
  type: 'InPlaceUpdate',
  inPlaceUpdate: { maxSurge, maxUnavailable: 1, orchestrationType },
});

test.each<Start & { title: string; increase?: number; want: { replicas: number; working: number } }>([
  {
    title: 'frozen before its new set has grown',
    strategy: rolling(0, 2),
    replicas: 6,
    sizes: [4, 0],
    isFrozen: true,
    want: { replicas: 6, working: 4 },
  },
  {
    title: 'frozen when its new set has grown in part',
    strategy: rolling(0, 3),
    replicas: 10,
    sizes: [7, 2],
    isFrozen: true,
    want: { replicas: 10, working: 7 },
  },
  {
    title: 'frozen, and what was requested of it goes',
    strategy: rolling(0, 2),
    replicas: 6,
    sizes: [4, 0],
    isFrozen: true,
    increase: 3,
    want: { replicas: 6, working: 4 },
  },
  {
    title: 'not frozen, and what was requested of it goes',
    strategy: rolling(0, 1),
    replicas: 3,
    sizes: [3, 0],
    increase: 2,
    want: { replicas: 3, working: 2 },
  },
  {
    title: 'in place that waits for a person, and what was requested of it goes',
    strategy: inPlace('Manual', 0),
    replicas: 3,
    sizes: [3, 0],
    increase: 2,
    want: { replicas: 3, working: 3 },
  },
  {
    title: 'in place whose new set has its whole size',
    strategy: inPlace('Auto', 4),
    replicas: 4,
    sizes: [4, 4],
    want: { replicas: 4, working: 3 },
  },
  {
    title: 'in place whose new set had its whole size, and what was requested of it since goes',
    strategy: inPlace('Auto', 4),
    replicas: 4,
    sizes: [4, 4],
    increase: 3,
    want: { replicas: 4, working: 3 },
  },
])('nothing that is taken back costs a working Machine of a rollout $title', async ({ increase, want, ...start }) => {
  const byName = new StuckRollout(start);
  const together = new StuckRollout(start);
  const bySize = new StuckRollout(start);
  for (const rollout of [byName, together, bySize]) {
    await rollout.settle();
    if (increase !== undefined) await rollout.increase(increase);
    await rollout.settle();
  }
  for (let i = 0; i < 8; i++) {
    for (const call of [() => byName.withdraw(1), () => together.withdraw(20), () => bySize.decrease()]) {
      await call().catch(() => undefined);
    }
    for (const rollout of [byName, together, bySize]) await rollout.settle();
  }

  for (const { replicas, working } of [byName, together, bySize]) expect({ replicas, working }).toEqual(want);
});
