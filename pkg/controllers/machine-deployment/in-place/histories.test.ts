import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { Registry } from 'prom-client';

import { machineDeployment, node } from '../../../../test/builders.ts';
import { DeploymentWorld } from '../../../../test/fakes/replicas-world.ts';
import { NODE_LABEL, SELECTED_FOR_UPDATE_LABEL, UPDATE_RESULT_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type {
  MachineDeployment,
  MachineDeploymentStrategy,
} from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import { controllerOf, isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { toTimestamp } from '../../../base/clock/clock.ts';
import { ApiError, isConflict } from '../../../kube/client/errors.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import {
  machineDeployments,
  machines as machineResource,
  nodes as nodeResource,
} from '../../../kube/client/resource.ts';
import { Expectations } from '../../../work/reconcile/expectations.ts';
import { machineSetController } from '../../machine-set/controller.ts';
import { machineSetMetrics } from '../../machine-set/metrics.ts';
import { machineDeploymentController } from '../controller.ts';

const INTERRUPTED = {
  conflict: new ApiError(409, 'Conflict', 'somebody else has changed it'),
  closed: new GateClosedError('outage', 'target', 'it is away'),
  death: new Error('the process has died'),
};

type Event =
  | { readonly do: 'roll'; readonly to: string }
  | { readonly do: 'scale'; readonly to: number }
  | { readonly do: 'strategy'; readonly type: 'InPlaceUpdate' | 'RollingUpdate' }
  | { readonly do: 'pause' | 'outage' | 'sets' | 'machines' | 'pass' }
  | { readonly do: 'interrupted'; readonly after: number; readonly by: keyof typeof INTERRUPTED };

const roll = fc.record({ do: fc.constant('roll' as const), to: fc.constantFrom('c0', 'c1') });
const scale = fc.record({ do: fc.constant('scale' as const), to: fc.nat(5) });
const by = fc.constantFrom('conflict' as const, 'closed' as const, 'death' as const);
const interrupted = fc.record({ do: fc.constant('interrupted' as const), after: fc.nat(4), by });
const type = fc.constantFrom('InPlaceUpdate' as const, 'RollingUpdate' as const);
const happening: fc.WeightedArbitrary<Event>[] = [
  { weight: 4, arbitrary: roll },
  { weight: 1, arbitrary: scale },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('pause' as const, 'outage' as const) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('machines' as const, 'pass' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('sets' as const) }) },
  { weight: 4, arbitrary: interrupted },
];
const anyLimits = fc.record({ maxSurge: fc.nat(1), maxUnavailable: fc.integer({ min: 1, max: 3 }) });
const strategyChange = { weight: 1, arbitrary: fc.record({ do: fc.constant('strategy' as const), type }) };

test('an update in place that is interrupted between any two writes makes and deletes no machine that nobody asked for, and ends', async () => {
  await holds(happening, (history) => {
    expect(history.deleted).toBeLessThanOrEqual(history.mayGo);
    expect(history.made).toBeLessThanOrEqual(history.mayCome);
  });
});

test('an update in place whose strategy changes meanwhile ends, and leaves nothing on Nodes', async () => {
  await holds([...happening, strategyChange], () => undefined);
});

async function holds(events: fc.WeightedArbitrary<Event>[], check: (history: History) => void): Promise<void> {
  const list = fc.array(fc.oneof(...events), { maxLength: 25, size: 'max' });
  const numRuns = Number(process.env['MACHINIST_HISTORIES'] ?? 40);
  const property = fc.asyncProperty(
    anyLimits,
    fc.integer({ min: 2, max: 5 }),
    list,
    async (given, replicas, happened) => {
      const history = new History(given, replicas);
      await history.settle();
      await history.begin();
      for (const event of happened) await history.happen(event);
      await history.settle();

      check(history);
      expect(history.outcome()).toEqual(history.wanted());
    },
  );
  await fc.assert(property, { numRuns });
}

interface Limits {
  readonly maxSurge: number;
  readonly maxUnavailable: number;
}

/** Both controllers over one API server, whose writes the caches show at once, with machines that join and Nodes that are updated step by step. */
class History {
  readonly #world: DeploymentWorld;
  readonly #limits: Limits;
  readonly #sets: ReturnType<typeof machineSetController>;
  #deployments: ReturnType<typeof machineDeploymentController>;
  #isOutage = false;
  #names = 0;
  made = 0;
  deleted = 0;
  mayCome = 0;
  mayGo = 0;

  constructor(limits: Limits, replicas: number) {
    this.#limits = limits;
    const deployment = machineDeployment((d) => {
      d.metadata.finalizers = ['machine.sapcloud.io/machine-controller-manager'];
      Object.assign(d.spec, { replicas, strategy: this.#strategy('InPlaceUpdate') });
      d.spec.template.spec = { class: { kind: 'MachineClass', name: 'c0' } };
    });
    const world = new DeploymentWorld(deployment);
    const { client, targetClient, clock, recorder, targets, brake, log, machines, machineSets } = world;
    const shared = { reader: client, writer: client, clock, recorder, targets, brake, log, machines, machineSets };
    const create = client.create.bind(client);
    client.create = (intent, resource, object, options) => {
      if (resource.plural === 'machines') this.made += 1;
      const metadata = { ...object.metadata, creationTimestamp: toTimestamp(clock.now()) };
      return create(intent, resource, { ...object, metadata }, options);
    };
    for (const its of [client, targetClient]) {
      const patch = its.patch.bind(its);
      its.patch = (intent, ...rest) => {
        const isHeld = this.#isOutage && (its === targetClient || intent === 'destroy');
        return isHeld ? Promise.reject(INTERRUPTED.closed) : patch(intent, ...rest);
      };
    }
    this.#world = world;
    this.#deployments = machineDeploymentController(world);
    this.#sets = machineSetController({
      ...shared,
      machineDeployments: world.machineDeployments,
      expectations: new Expectations({ clock }),
      safetyRecorder: recorder,
      metrics: machineSetMetrics(new Registry(), () => []),
      nodeConditions: [],
      newSuffix: () => `${this.#names++}`.padStart(5, '0'),
    });
  }

  get #deployment(): MachineDeployment {
    const [deployment] = this.#world.machineDeployments.list();
    if (deployment === undefined) throw new Error('it is there');
    return deployment;
  }

  /** An update in place, up to where the first Machines can move. */
  async begin(): Promise<void> {
    this.made = this.deleted = this.mayGo = this.mayCome = 0;
    await this.happen({ do: 'roll', to: 'c1' });
    const isUpdated = ({ status }: Machine): boolean =>
      (status?.conditions ?? []).some(({ reason }) => reason === 'UpdateSuccessful');
    for (let i = 0; i < 20 && !this.#world.machines.list().some(isUpdated); i++) {
      for (const next of ['pass', 'pass', 'sets', 'machines'] as const) await this.happen({ do: next });
    }
  }

  async happen(event: Event): Promise<void> {
    const { client, clock } = this.#world;
    const { spec } = this.#deployment;
    clock.advance(15_000);
    switch (event.do) {
      case 'roll':
        if (spec.template.spec?.class?.name !== event.to) this.#mayMove(this.#limits.maxSurge);
        return this.#change({
          template: { ...spec.template, spec: { class: { kind: 'MachineClass', name: event.to } } },
        });
      case 'scale':
        this.mayGo += Math.max(0, (spec.replicas ?? 0) - event.to);
        this.mayCome += Math.max(0, event.to - (spec.replicas ?? 0));
        return this.#change({ replicas: event.to });
      case 'strategy':
        return this.#change({ strategy: this.#strategy(event.type) });
      case 'pause':
        return this.#change({ paused: spec.paused !== true });
      case 'outage':
        this.#isOutage = !this.#isOutage;
        return;
      case 'machines':
        return this.#machinesStep();
      case 'sets':
        return this.#setPasses();
      case 'interrupted': {
        const isDeath = event.by === 'death';
        const failures = Array.from({ length: isDeath ? 50 : 1 }, () => INTERRUPTED[event.by]);
        client.failures.push(...Array.from({ length: event.after }, () => undefined), ...failures);
        await this.#pass();
        client.failures.length = 0;
        if (isDeath) this.#deployments = machineDeploymentController(this.#world);
        return;
      }
      case 'pass':
        return this.#pass();
    }
  }

  /** Nothing is held back any more, and all act until nothing changes. */
  async settle(): Promise<void> {
    this.#isOutage = false;
    this.#change({ paused: false });
    for (let i = 0, reached = 0; i < 60 && reached < 3; i++) {
      reached = JSON.stringify(this.outcome()) === JSON.stringify(this.wanted()) ? reached + 1 : 0;
      for (const next of ['pass', 'pass', 'sets', 'machines'] as const) await this.happen({ do: next });
    }
  }

  outcome(): unknown {
    const { machines, machineSets, nodes } = this.#world;
    const sets = machineSets.list().map((set) => {
      const its = machines.list().filter((machine) => controllerOf(machine)?.uid === set.metadata.uid);
      return { of: set.spec.template?.spec?.class?.name, replicas: set.spec.replicas, machines: its.length };
    });
    const cordoned = nodes.list().filter(({ spec }) => spec?.unschedulable === true);
    const labelled = [...nodes.list(), ...machines.list()].filter(
      (one) => UPDATE_RESULT_LABEL in (one.metadata.labels ?? {}),
    );
    const left = [...cordoned, ...labelled].map(({ metadata }) => metadata.name);
    return { sets: sets.filter((set) => set.machines > 0 || set.replicas !== 0), left };
  }

  wanted(): unknown {
    const { replicas = 0, template } = this.#deployment.spec;
    const set = { of: template.spec?.class?.name, replicas, machines: replicas };
    return { sets: replicas === 0 ? [] : [set], left: [] };
  }

  #strategy(to: 'InPlaceUpdate' | 'RollingUpdate'): MachineDeploymentStrategy {
    return to === 'RollingUpdate'
      ? { type: to, rollingUpdate: this.#limits }
      : { type: to, inPlaceUpdate: { ...this.#limits, orchestrationType: 'Auto' } };
  }

  #mayMove(count: number): void {
    this.mayCome += count;
    this.mayGo += count;
  }

  #change(spec: Partial<MachineDeployment['spec']>): void {
    const before = this.#deployment;
    const metadata = { ...before.metadata, generation: (before.metadata.generation ?? 0) + 1 };
    this.#world.client.wrote(machineDeployments, { ...before, metadata, spec: { ...before.spec, ...spec } });
  }

  async #pass(): Promise<void> {
    await this.#ends(this.#deployments.reconcile('default/deployment-1', new AbortController().signal));
  }

  async #setPasses(): Promise<void> {
    for (const { metadata } of this.#world.machineSets.list()) {
      await this.#ends(this.#sets.reconcile(`default/${metadata.name}`, new AbortController().signal));
    }
  }

  /** A pass may fail as it was made to, and by what it has written itself: it is repeated. */
  async #ends(pass: Promise<unknown>): Promise<void> {
    const known: unknown[] = Object.values(INTERRUPTED);
    await pass.catch((error: unknown) => {
      if (!known.includes(error) && !isConflict(error)) throw error;
    });
  }

  /** Machines join and go, and Nodes that were chosen are updated, each by one step. */
  #machinesStep(): void {
    const { client, targetClient, machines, nodes } = this.#world;
    for (const machine of machines.list()) {
      const { name } = machine.metadata;
      const its = nodes.get(name);
      const labels = its?.metadata.labels ?? {};
      if (isBeingDeleted(machine)) {
        this.deleted += 1;
        client.deleted(machineResource, machine.metadata);
        targetClient.deleted(nodeResource, { name });
      } else if (its === undefined) {
        const joined = node((n) => {
          Object.assign(n.metadata, { name, uid: name });
          n.spec.providerID = `sim:///${name}`;
        });
        targetClient.wrote(nodeResource, joined);
        this.#show(machine, 'Running');
      } else if (phaseOf(machine) === 'InPlaceUpdating' && UPDATE_RESULT_LABEL in labels) {
        this.#showNode(its, 'UpdateSuccessful');
        this.#show(machine, 'Running', 'UpdateSuccessful');
      } else if (phaseOf(machine) === 'InPlaceUpdating') {
        const result = { ...labels, [UPDATE_RESULT_LABEL]: 'successful' };
        targetClient.wrote(nodeResource, { ...its, metadata: { ...its.metadata, labels: result } });
      } else if (SELECTED_FOR_UPDATE_LABEL in labels && !(UPDATE_RESULT_LABEL in labels)) {
        this.#showNode({ ...its, spec: { ...its.spec, unschedulable: true } }, 'ReadyForUpdate');
        this.#show(machine, 'InPlaceUpdating', 'ReadyForUpdate');
      }
    }
  }

  #show(machine: Machine, phase: MachinePhase, reason?: string): void {
    const { name } = machine.metadata;
    const labels = { ...machine.metadata.labels, [NODE_LABEL]: name };
    const conditions = reason === undefined ? [] : [{ type: 'InPlaceUpdate', status: 'True', reason } as const];
    const status = { ...machine.status, currentStatus: { ...machine.status?.currentStatus, phase }, conditions };
    const spec = { ...machine.spec, providerID: `sim:///${name}` };
    this.#world.client.wrote(machineResource, { ...machine, metadata: { ...machine.metadata, labels }, spec, status });
  }

  #showNode(its: Node, reason: string): void {
    const conditions = [{ type: 'InPlaceUpdate', status: 'True', reason } as const];
    this.#world.targetClient.wrote(nodeResource, { ...its, status: { ...its.status, conditions } });
  }
}
