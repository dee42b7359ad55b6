import { type BuiltMachine, machine, machineDeployment, machineSet, node } from '../builders.ts';
import { MINUTE } from '../durations.ts';
import { FakeWorld, type PassSeen } from './machine-world.ts';
import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import {
  MACHINE_FINALIZER,
  MACHINE_NAME_LABEL,
  MAX_REPLACEMENTS_ANNOTATION,
  NODE_FINALIZER,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachinePhase } from '../../pkg/apis/machine/v1alpha1/phases.ts';
import type { Node, NodeCondition } from '../../pkg/apis/wire.ts';
import { toTimestamp } from '../../pkg/base/clock/clock.ts';
import { ReplacementPace } from '../../pkg/controllers/machine-facts/pace.ts';
import { ReplacementBudget } from '../../pkg/controllers/machine-facts/replacement-budget.ts';

export const START = '2026-01-01T00:00:00Z';
export const EARLIER = '2025-12-31T00:00:00Z';
export const START_MS = Date.parse(START);
export const SILENT = { type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown' };

export const readySince = (lastTransitionTime: string): NodeCondition => ({
  type: 'Ready',
  status: 'True',
  lastTransitionTime,
});

/** Machines of one zone, the first of which is m-1; those of a pool belong to one MachineDeployment. */
export class Zone {
  readonly world = new FakeWorld();
  #version = 1;

  constructor(maxReplacements?: string) {
    if (maxReplacements !== undefined) this.#limit(maxReplacements);
  }

  put(name: string, phase: MachinePhase, change: (m: BuiltMachine) => void = () => undefined): void {
    this.world.machines.put(
      machine((m) => {
        m.metadata.name = name;
        m.metadata.uid = name;
        m.metadata.resourceVersion = String(500 + this.#version++);
        m.metadata.finalizers = [MACHINE_FINALIZER];
        m.metadata.labels = { node: name };
        m.metadata.ownerReferences = [
          { apiVersion: API_VERSION, kind: 'MachineSet', name: 's', uid: 's', controller: true },
        ];
        m.metadata.annotations = { 'machinepriority.machine.sapcloud.io': '3' };
        m.spec.providerID = `sim:///${name}`;
        m.status.currentStatus = { phase, lastUpdateTime: START };
        m.status.conditions = [SILENT];
        m.status.lastOperation = { type: 'HealthCheck', state: 'Processing', description: 'It is unhealthy.' };
        change(m);
      }),
    );
  }

  /** What a list shows of its Node. */
  say(name: string, condition: NodeCondition | readonly NodeCondition[], { isDeleted = true } = {}): void {
    const old = this.world.nodes.cache.get(name);
    if (old !== undefined && !isDeleted) this.world.controller.forgetNode(old);
    const current = node((n) => {
      n.metadata.name = name;
      n.metadata.uid = `node-${name}`;
      n.metadata.resourceVersion = String(500 + this.#version++);
      n.metadata.finalizers = [NODE_FINALIZER];
      n.metadata.labels = { [MACHINE_NAME_LABEL]: name };
      n.spec.providerID = `sim:///${name}`;
      if (isDeleted) n.metadata.deletionTimestamp = START;
      n.status.conditions = [condition].flat();
    });
    this.world.controller.nodeSeen(old, current, () => [this.get(name)]);
    this.world.nodes.cache.put(current);
  }

  /** Somebody deletes its Node, which the watch delivers; one that our finalizer does not keep is gone. */
  deleteNode(name: string, atMs = START_MS, { isGone = false } = {}): void {
    const { controller, nodes } = this.world;
    const seen = nodes.cache.get(name) as Node;
    if (isGone) {
      controller.nodeDeleted({ ...seen, metadata: { ...seen.metadata, finalizers: [] } }, undefined, [this.get(name)]);
      nodes.cache.remove(name);
      nodes.live.set(name, undefined);
      return;
    }
    const old = seen;
    const deleted = { resourceVersion: String(500 + this.#version++), deletionTimestamp: toTimestamp(atMs) };
    const current = { ...old, metadata: { ...old.metadata, ...deleted } };
    controller.nodeDeleted(old, current, [this.get(name)]);
    nodes.cache.put(current);
  }

  get(name = 'm-1'): Machine {
    return this.world.machines.get(`default/${name}`) as Machine;
  }

  get phase(): string | undefined {
    return this.get().status?.currentStatus?.phase;
  }

  get deleted(): readonly string[] {
    return this.world.deletedMachines;
  }

  /** A pass over each that is there; who was deleted is gone with it, and replaced by one that runs. */
  async sweep(names: readonly string[]): Promise<PassSeen[]> {
    const passes: PassSeen[] = [];
    for (const name of names) {
      if (this.world.machines.get(`default/${name}`) === undefined) continue;
      passes.push(await this.world.reconcile(`default/${name}`));
    }
    for (const name of this.deleted) {
      this.world.machines.remove(`default/${name}`);
      this.world.nodes.cache.remove(name);
      this.put(`new-${name}`, 'Running');
    }
    return passes;
  }

  /** The process is another one. */
  restart(): void {
    const ledSinceMs = this.world.clock.now();
    this.world.trustedForMs = () => this.world.clock.now() - ledSinceMs;
    Object.assign(this.world, { pace: new ReplacementPace({ clock: this.world.clock }) });
    this.world.restart();
  }

  #limit(annotation: string): void {
    const owner = { apiVersion: API_VERSION, kind: 'MachineDeployment', name: 'd', uid: 'd', controller: true };
    const { machines, owners, clock } = this.world;
    owners.deployments.put(
      machineDeployment((d) => {
        Object.assign(d.metadata, { name: 'd', uid: 'd', annotations: { [MAX_REPLACEMENTS_ANNOTATION]: annotation } });
      }),
    );
    owners.sets.put(
      machineSet((set) => void Object.assign(set.metadata, { name: 's', uid: 's', ownerReferences: [owner] })),
    );
    Object.assign(this.world, { budget: new ReplacementBudget({ machines, owners, clock }) });
    this.world.restart();
  }
}

export const numbered = (count: number): string[] => Array.from({ length: count }, (_, i) => `m-${i + 1}`);

/** A zone whose first machines are silent, and their Nodes deleted. */
export function silentZone(
  silent: number,
  all: number,
  maxReplacements?: string,
): { zone: Zone; names: readonly string[] } {
  const zone = new Zone(maxReplacements);
  const names = numbered(all);
  for (const [i, name] of names.entries()) {
    zone.put(name, i < silent ? 'Unknown' : 'Running');
    zone.say(name, i < silent ? SILENT : readySince(EARLIER), { isDeleted: i < silent });
  }
  zone.world.clock.advance(5 * MINUTE);
  return { zone, names };
}

/** What is told of m-1 while it is kept although its Node was deleted. */
export const KEPT = /^Node m-1 was deleted while it was not ready\. The Machine is kept for now: /;

/** The reason of condition NodeDeleted. */
export const reasonShown = (zone: Zone, name: string): string | undefined =>
  zone.get(name).status?.machineConditions?.find(({ type }) => type === 'NodeDeleted')?.reason;

/** The Events of passes. */
export const told = (passes: readonly PassSeen[]): string[] =>
  passes.flatMap(({ events }) => events.map(({ message }) => message));
