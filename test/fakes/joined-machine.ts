import { machine, node } from '../builders.ts';
import { FakeWorld } from './machine-world.ts';
import type { LastOperation, Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachinePhase } from '../../pkg/apis/machine/v1alpha1/phases.ts';

export const FINALIZER = 'machine.sapcloud.io/machine-controller-manager';
export const NODE_FINALIZER = 'node.machine.sapcloud.io/machine-controller';
export const READY = { type: 'Ready', status: 'True' };

/** How it is, and how its Node is. */
export interface Setup {
  readonly phase: MachinePhase;
  readonly last?: LastOperation;
  readonly mirrored?: readonly { type: string; status: string }[];
  readonly conditions?: readonly { type: string; status: string }[];
  readonly taints?: readonly { key: string; effect: string }[];
  readonly noNode?: boolean;
  readonly noLabel?: boolean;
}

/** A world with Machine m-1 that has joined, and its Node. */
export function joinedMachine(setup: Setup): FakeWorld {
  const { phase, last, mirrored = [READY], conditions = [READY], taints = [] } = setup;
  const { noNode = false, noLabel = false } = setup;
  const world = new FakeWorld();
  world.machines.put(
    machine((m) => {
      m.metadata.finalizers = [FINALIZER];
      m.metadata.annotations = { 'machinepriority.machine.sapcloud.io': '3' };
      if (noLabel) m.metadata.labels = {};
      m.status.currentStatus.phase = phase;
      if (last !== undefined) m.status.lastOperation = last;
      m.status.conditions = [...mirrored];
    }),
  );
  if (noNode) return world;
  world.nodes.cache.put(
    node((n) => {
      n.metadata.finalizers = [NODE_FINALIZER];
      n.metadata.labels['node.gardener.cloud/machine-name'] = 'm-1';
      n.status.conditions = [...conditions];
      n.spec.taints = [...taints];
    }),
  );
  return world;
}

export const currentMachine = (world: FakeWorld): Machine => world.machines.get('default/m-1') as Machine;
