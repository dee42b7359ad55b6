import { expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet, node } from '../../../test/builders.ts';
import { DeploymentWorld } from '../../../test/fakes/replicas-world.ts';
import { membershipOf, nodeGroup } from '../../../test/node-group.ts';
import { phaseOf, replicasOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import {
  FREEZE_LABEL,
  MACHINE_FINALIZER,
  REVISION_ANNOTATION,
  SELECTED_FOR_UPDATE_LABEL,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeploymentStrategy } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { Node } from '../../apis/wire.ts';
import { priorityOf } from '../../controllers/replicas/victim-order.ts';
import { CONTROLLER_INDEX } from '../../operator/indexes/owner-index.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { missingPlaceholder, placeholderOf } from '../placeholder.ts';
import { Places } from '../places.ts';
import { RunningChanges } from '../running-changes.ts';
import { mutations } from './index.ts';

type BuiltSet = ReturnType<typeof machineSet>;

const REVISIONS = { old: 1, other: 2, now: 3 };
const GROUP = nodeGroup({ min: 0, max: 20 });
const CALL = { peer: 'test', signal: new AbortController().signal, leftMs: () => 30_000, report: () => undefined };

interface Start {
  readonly strategy: MachineDeploymentStrategy;
  readonly replicas: number;
  /** Of the old set, whose Machines work, of the new one, and of one of another template between them, which get none that works. */
  readonly sizes: readonly [old: number, now: number, other?: number];
  readonly isFrozen?: boolean;
  readonly isPaused?: boolean;
  /** New Machines are created, and never become Nodes. */
  readonly isPending?: boolean;
  /** One of the old set has failed, is preserved, and has no Node. */
  readonly isOneKept?: boolean;
  /** One of the old set has not become a Node. */
  readonly isOneComing?: boolean;
}

/** A rollout whose new Machines never come, and an autoscaler that takes back what does not come. */
class StuckRollout {
  readonly #world: DeploymentWorld;
  readonly #places = new Places('x');
  readonly #isPending: boolean;
  #created = 0;
  readonly #mutations: ReturnType<typeof mutations>;

  constructor({
    strategy,
    replicas,
    sizes,
    isFrozen = false,
    isPaused = false,
    isPending = false,
    isOneKept = false,
    isOneComing = false,
  }: Start) {
    this.#isPending = isPending;
    const owner = machineDeployment(({ metadata, spec }) => {
      metadata.finalizers = [MACHINE_FINALIZER];
      metadata.annotations = { [REVISION_ANNOTATION]: '3' };
      if (isFrozen) metadata.labels = { ...metadata.labels, [FREEZE_LABEL]: 'True' };
      Object.assign(spec, { replicas, strategy, paused: isPaused });
    });
    const [old, now, other] = (['old', 'now', 'other'] as const).map((name, i) =>
      machineSet(({ metadata, spec }) => {
        Object.assign(metadata, { name, uid: name });
        metadata.ownerReferences = [controllerReference(owner, API_VERSION, 'MachineDeployment')];
        metadata.annotations = {
          [REVISION_ANNOTATION]: String(REVISIONS[name]),
          'deployment.kubernetes.io/desired-replicas': String(replicas),
          'deployment.kubernetes.io/max-replicas': String(replicas),
        };
        metadata.creationTimestamp = `2026-01-01T00:00:0${REVISIONS[name]}Z`;
        spec.replicas = sizes[i] ?? 0;
        if (name !== 'now') spec.template.spec = { class: { kind: 'MachineClass', name: `class-of-${name}` } };
      }),
    ) as [BuiltSet, BuiltSet, BuiltSet];
    const names = Array.from({ length: sizes[0] }, (_, i) => `m-${i}`);
    const machines = names.map((name, i) =>
      machine(({ metadata, status }) => {
        if (isOneKept && i === 0)
          status.currentStatus = { phase: 'Failed', preserveExpiryTime: '2027-01-01T00:00:00Z' };
        if (isOneComing && i === 0) status.currentStatus = { phase: 'Pending' };
        Object.assign(metadata, { name, uid: name, labels: { ...metadata.labels, pool: 'a', node: name } });
        metadata.ownerReferences = [controllerReference(old, API_VERSION, 'MachineSet')];
      }),
    );
    const joined = names.slice(isOneKept || isOneComing ? 1 : 0);
    const nodes = joined.map((name) => node(({ metadata }) => void Object.assign(metadata, { name, uid: name })));
    const world = new DeploymentWorld(owner, {
      sets: sizes[2] === undefined ? [now, old] : [now, old, other],
      machines,
      nodes,
    });
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
    return this.#world.machines.list().filter((one) => phaseOf(one) === 'Running').length;
  }

  get replicas(): number {
    return replicasOf(this.#deployment);
  }

  /** The controllers do what there is to do; Machines that a set gives up, or whose update in place is asked for, are gone at once. */
  async settle(): Promise<void> {
    const { machines, machineSets, nodes } = this.#world;
    for (let i = 0; i < 20; i++) {
      const { result } = await this.#world.pass();
      if (result instanceof Error) throw result;
      for (const { metadata } of nodes.list().filter(isChosen)) {
        machines.remove(`default/${metadata.name}`);
        nodes.remove(metadata.name);
      }
      for (const set of machineSets.list()) {
        const its = machines
          .byIndex(CONTROLLER_INDEX, set.metadata.uid)
          .toSorted((a, b) => priorityOf(b) - priorityOf(a));
        for (const { metadata } of its.slice(replicasOf(set))) {
          machines.remove(`default/${metadata.name}`);
          nodes.remove(metadata.name);
        }
        if (!this.#isPending || set.metadata.name !== 'now') continue;
        for (let n = its.length; n < replicasOf(set); n++) machines.put(this.#pending(set));
      }
    }
  }

  #pending(set: MachineSet): Machine {
    this.#created += 1;
    return machine(({ metadata, status }) => {
      const name = `pending-${this.#created}`;
      Object.assign(metadata, { name, uid: name, labels: { pool: 'a' } });
      metadata.ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
      status.currentStatus.phase = 'Pending';
    });
  }

  increase(delta: number): Promise<unknown> {
    return this.#mutations.increase(GROUP, delta, CALL);
  }

  decrease(): Promise<unknown> {
    return this.#mutations.decrease(GROUP, -1, CALL);
  }

  /** `count` replicas without a Machine that works, or as many as there are. */
  withdraw(count: number): Promise<unknown> {
    const machines = this.#world.machines.list();
    const places = this.#places.see(this.#deployment.metadata.uid, Math.max(0, this.replicas - machines.length));
    const pending = machines
      .filter((one) => phaseOf(one) === 'Pending')
      .map(({ metadata }) => placeholderOf(metadata.name));
    const ids = [...places.map((place) => missingPlaceholder(GROUP.id, place)), ...pending];
    const nodes = ids.slice(0, count).map((id) => ({ providerId: id, name: id }));
    return this.#mutations.delete(GROUP, nodes, CALL);
  }

  get #deployment() {
    const [deployment] = this.#world.machineDeployments.list();
    if (deployment === undefined) throw new Error('it is gone');
    return deployment;
  }
}

/** For an update in place, which fails. */
function isChosen({ metadata }: Node): boolean {
  return metadata.labels?.[SELECTED_FOR_UPDATE_LABEL] !== undefined;
}

const rolling = (maxSurge: number | string, maxUnavailable: number): MachineDeploymentStrategy => ({
  type: 'RollingUpdate',
  rollingUpdate: { maxSurge, maxUnavailable },
});
const inPlace = (orchestrationType: 'Auto' | 'Manual', maxSurge: number | string): MachineDeploymentStrategy => ({
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
  ...[
    { title: 'with a surge', strategy: rolling(1, 0), working: 5 },
    { title: 'without a surge', strategy: rolling(0, 1), working: 4 },
  ].map(({ title, strategy, working }) => ({
    title: `${title}, whose new Machines never join, of a MachineDeployment with a preserved Machine that has no Node`,
    strategy,
    replicas: 6,
    sizes: [6, 0] as const,
    isPending: true,
    isOneKept: true,
    want: { replicas: 6, working },
  })),
  {
    title: 'in place of which an update has failed',
    strategy: inPlace('Auto', 0),
    replicas: 6,
    sizes: [5, 1],
    want: { replicas: 6, working: 5 },
  },
  {
    title: 'in place of which an update has failed, and whose new Machines never join',
    strategy: inPlace('Auto', 0),
    replicas: 6,
    sizes: [5, 1],
    isPending: true,
    want: { replicas: 6, working: 5 },
  },
  {
    title: 'in place of which an update has failed, and whose old set has a Machine that has not joined either',
    strategy: inPlace('Auto', 1),
    replicas: 5,
    sizes: [5, 2],
    isPending: true,
    isOneComing: true,
    want: { replicas: 5, working: 4 },
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
  ...(['Manual', 'Auto'] as const).map((type) => ({
    title: `in place (${type}) that is paused and has got a third template, where the second one cannot be created`,
    strategy: inPlace(type, 0),
    replicas: 6,
    sizes: [3, 0, 3] as const,
    isPaused: true,
    want: { replicas: 3, working: 3 },
  })),
  {
    title: 'whose surge becomes smaller with the size, and whose new Machines never join',
    strategy: rolling('25%', 0),
    replicas: 8,
    sizes: [8, 0],
    isPending: true,
    increase: 1,
    want: { replicas: 8, working: 8 },
  },
  {
    title: 'in place whose surge becomes smaller with the size, and whose new Machines never join',
    strategy: inPlace('Auto', '10%'),
    replicas: 11,
    sizes: [7, 6],
    isPending: true,
    want: { replicas: 8, working: 7 },
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
  // Of Machines, all that are named go, or none.
  const atOnce = (): number => (start.isPending === true ? together.replicas - want.replicas : 20);
  for (let i = 0; i < 8; i++) {
    for (const call of [() => byName.withdraw(1), () => together.withdraw(atOnce()), () => bySize.decrease()]) {
      await call().catch(() => undefined);
    }
    for (const rollout of [byName, together, bySize]) await rollout.settle();
  }

  for (const { replicas, working } of [byName, together, bySize]) expect({ replicas, working }).toEqual(want);
});
