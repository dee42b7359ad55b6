import {
  CORDONED_BY_MAINTENANCE_ANNOTATION,
  MACHINE_FINALIZER,
  MACHINE_NAME_LABEL,
  NODE_FINALIZER,
  PRIORITY_ANNOTATION,
} from '../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachinePhase } from '../pkg/apis/machine/v1alpha1/phases.ts';
import type { Node } from '../pkg/apis/wire.ts';
import type { DrainOutcome, DrainRequest } from '../pkg/drain/drain.ts';
import { machine, node } from './builders.ts';
import { FakeWorld, type PassSeen } from './fakes/machine-world.ts';

const READY = { type: 'Ready', status: 'True' };
const NOT_READY = { type: 'Ready', status: 'Unknown' };

/** A machine with its Node in a FakeWorld in which patches of the Node are kept, and drains raise their barrier. */
export class KeptMachine {
  readonly world = new FakeWorld();
  #version = 1_000;
  #seenDrains = 0;

  constructor(change: (m: ReturnType<typeof machine>) => void = () => undefined) {
    const { world } = this;
    world.nodes.keepsPatches = true;
    world.machines.put(
      machine((m) => {
        m.metadata.finalizers = [MACHINE_FINALIZER];
        m.metadata.annotations = { [PRIORITY_ANNOTATION]: '3' };
        m.status.conditions = [READY];
        change(m);
      }),
    );
    world.nodes.cache.put(
      node((n) => {
        n.metadata.finalizers = [NODE_FINALIZER];
        n.metadata.labels[MACHINE_NAME_LABEL] = 'm-1';
        n.status.conditions = [READY];
      }),
    );
  }

  get machine(): Machine {
    const current = this.world.machines.get('default/m-1');
    if (current === undefined) throw new Error('the machine is gone');
    return current;
  }

  get node(): Node {
    const current = this.world.nodes.cache.get('m-1');
    if (current === undefined) throw new Error('the node is gone');
    return current;
  }

  get phase(): string {
    return this.machine.status?.currentStatus?.phase ?? '';
  }

  /** What somebody else does to the Machine. */
  changeMachine(change: (m: Machine) => void): void {
    const copy = JSON.parse(JSON.stringify(this.machine)) as Machine;
    change(copy);
    copy.metadata.resourceVersion = this.world.writer.nextVersion();
    this.world.machines.put(copy);
  }

  /** What somebody else does to the Node. */
  changeNode(change: (n: Node) => void): void {
    const copy = JSON.parse(JSON.stringify(this.node)) as Node;
    change(copy);
    copy.metadata.resourceVersion = String((this.#version += 1));
    this.world.nodes.cache.put(copy);
  }

  annotateMachine(key: string, value: string | undefined): void {
    this.changeMachine((m) => setOrDelete((m.metadata.annotations ??= {}), key, value));
  }

  annotateNode(key: string, value: string | undefined): void {
    this.changeNode((n) => setOrDelete((n.metadata.annotations ??= {}), key, value));
  }

  labelNode(key: string, value: string | undefined): void {
    this.changeNode((n) => setOrDelete((n.metadata.labels ??= {}), key, value));
  }

  setReady(isReady: boolean): void {
    this.changeNode((n) => {
      const others = (n.status?.conditions ?? []).filter(({ type }) => type !== 'Ready');
      n.status = { ...n.status, conditions: [isReady ? READY : NOT_READY, ...others] };
    });
  }

  setPhase(phase: MachinePhase): void {
    this.changeMachine((m) => {
      m.status = { ...m.status, currentStatus: { ...m.status?.currentStatus, phase } };
    });
  }

  /** A failed machine: its Node does not work. */
  fail(): void {
    this.setReady(false);
    this.setPhase('Failed');
  }

  condition(type: string): NonNullable<NonNullable<Node['status']>['conditions']>[number] | undefined {
    return this.node.status?.conditions?.find((one) => one.type === type);
  }

  isTainted(key: string): boolean {
    return this.node.spec?.taints?.some((taint) => taint.key === key) === true;
  }

  async pass(): Promise<PassSeen> {
    const seen = await this.world.reconcile();
    await this.world.settle();
    for (const request of this.world.drains.requests.slice(this.#seenDrains)) this.#raiseBarrier(request);
    this.#seenDrains = this.world.drains.requests.length;
    return seen;
  }

  /** Passes until one changes nothing and asks for no other at once; `atMost` is far more than it should take. */
  async rest(atMost = 20): Promise<PassSeen> {
    let error: unknown;
    for (let i = 0; i < atMost; i++) {
      const { done } = this.world.nodes;
      const before = done.length;
      const seen = await this.pass();
      const hasWritten = done.slice(before).some((what) => !what.startsWith('read'));
      ({ error } = seen);
      const isDue = seen.result.kind === 'requeue' && seen.result.afterMs === 0;
      if (seen.writes.length === 0 && !hasWritten && !isDue && seen.error === undefined) return seen;
    }
    throw new Error(`the machine does not come to rest: ${JSON.stringify(this.machine.status)}`, { cause: error });
  }

  /** Every drain that runs ends like that. */
  async endDrains(outcome: DrainOutcome = { kind: 'drained' }): Promise<void> {
    for (let i = 0; i < this.world.drains.requests.length; i++) this.world.drains.end(outcome);
    await this.world.settle();
  }

  #raiseBarrier({ barrier }: DrainRequest): void {
    this.changeNode((n) => {
      if (typeof barrier === 'string') {
        const isOurs = barrier !== 'cordon' && n.spec?.unschedulable !== true;
        if (isOurs)
          n.metadata.annotations = { ...n.metadata.annotations, [CORDONED_BY_MAINTENANCE_ANNOTATION]: 'true' };
        n.spec = { ...n.spec, unschedulable: true };
      } else if (!this.isTainted(barrier.taint.key)) {
        n.spec = { ...n.spec, taints: [...(n.spec?.taints ?? []), barrier.taint] };
      }
    });
  }
}

/** What may happen to one. */
export type KeptAction = (kept: KeptMachine) => void | Promise<unknown>;

/** What may happen to any, in any order: restarts, passes, ends of drains, and writes that fail. */
export const KEPT_ACTIONS: readonly KeptAction[] = [
  (kept) => kept.world.restart(),
  (kept) => kept.pass(),
  (kept) => kept.pass(),
  (kept) => kept.endDrains(),
  (kept) => kept.endDrains({ kind: 'incomplete', progress: { remainingPods: 1, blocked: [] } }),
  async (kept) => {
    kept.world.losesWrites = true;
    await kept.pass();
    kept.world.losesWrites = false;
  },
  async (kept) => {
    kept.world.nodes.failure = new Error('the Node cannot be written');
    await kept.pass();
    kept.world.nodes.failure = undefined;
  },
];

function setOrDelete(values: Record<string, string>, key: string, value: string | undefined): void {
  if (value === undefined) delete values[key];
  else values[key] = value;
}
