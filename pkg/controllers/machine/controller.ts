import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { Node } from '../../apis/wire.ts';
import type { Logger } from '../../base/log/logger.ts';
import type { Writer } from '../../kube/client/client.ts';
import { runSteps, stop, type StepResult } from '../../work/reconcile/result.ts';
import type { MachineEventSink } from '../machine-facts/events.ts';
import type { NodeAccess } from '../machine-facts/node-access.ts';
import { copyOf } from '../machine-facts/status.ts';
import type { MachineStepsDeps } from './collaborators.ts';
import { type MachineContext, MachineNotes } from './context.ts';
import { runPass } from '../../work/reconcile/object-pass/run-pass.ts';
import { writePass } from './record/write.ts';
import { RefusedRecords } from './record/refused-record.ts';
import type { MachineSteps } from './steps.ts';

export interface MachineControllerDeps extends Pick<
  MachineStepsDeps,
  'machines' | 'activities' | 'outages' | 'clock' | 'random'
> {
  readonly writer: Writer;
  readonly recorder: MachineEventSink;
  readonly steps: MachineSteps;
  /** The Nodes of a Machine's target cluster; undefined: there is none. */
  readonly nodesOf: (machine: Machine) => NodeAccess | undefined;
}

/**
 * Turns Machines into VMs and Nodes, and back. A pass takes one copy, runs the steps on it and writes it once: at most one
 * patch of the object and one of its status, each only when something changed.
 */
export class MachineController {
  readonly #deps: MachineControllerDeps;
  readonly #refused: RefusedRecords;

  constructor(deps: MachineControllerDeps) {
    this.#deps = deps;
    this.#refused = new RefusedRecords(deps);
  }

  async reconcile(key: string, signal: AbortSignal, log: Logger): Promise<StepResult> {
    const { machines, steps, activities } = this.#deps;
    const observed = machines.get(key);
    if (observed === undefined) return stop;

    try {
      const list = isBeingDeleted(observed) ? steps.deletion : steps.upkeep;
      const ctx = this.#context(key, observed, signal, log);
      const run = () => runSteps(list, ctx, () => (ctx.pass.steps += 1));
      return await runPass(ctx.pass, run, () => writePass({ ...this.#deps, refused: this.#refused }, ctx));
    } finally {
      // Machines may vanish during a pass; what it noted for one afterwards nobody would ever ask for.
      const uid = machines.get(key)?.metadata.uid;
      if (uid !== observed.metadata.uid) {
        this.forget(observed);
        activities.forgetAll(key, uid);
      }
    }
  }

  /**
   * The watch has delivered that a Node of these Machines is being deleted now, or is gone (no `current`), right after it was like this. One that a
   * cluster has forgotten that was set back was not deleted.
   */
  nodeDeleted(old: Node, current: Node | undefined, machines: readonly Machine[]): void {
    const { outages, steps } = this.#deps;
    if (outages().some(({ isSetBack }) => isSetBack)) return;
    if (current !== undefined) steps.deletedNodes.noteDeleted(old, current, machines);
    else if (!steps.deletedNodes.isEarly(old)) {
      for (const machine of machines) steps.lostNodes.noteDeleted(machine, old);
    }
  }

  /** The watch has delivered how a Node of these Machines is, right after it was like `old`. */
  nodeDelivered(old: Node, current: Node, machines: () => readonly Machine[]): void {
    this.#deps.steps.brokenNodes.noteDelivered(old, current, machines);
  }

  /** A Node of these Machines is seen, after it was seen like `old`. */
  nodeSeen(old: Node | undefined, current: Node, machines: () => readonly Machine[]): void {
    this.#deps.steps.deletedNodes.noteSeen(old, current, machines);
  }

  /** A Node is gone, or not being deleted. */
  forgetNode(node: Node): void {
    this.#deps.steps.deletedNodes.forgetNode(node);
  }

  forget({ metadata: { uid } }: Machine): void {
    this.#deps.steps.forget(uid);
    this.#refused.forget(uid);
  }

  #context(key: string, observed: Machine, signal: AbortSignal, log: Logger): MachineContext {
    const nodes = this.#deps.nodesOf(observed);
    return { key, observed, machine: copyOf(observed), signal, log, pass: new MachineNotes(), nodes };
  }
}
