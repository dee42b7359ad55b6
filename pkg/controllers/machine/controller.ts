import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { Node } from '../../apis/wire.ts';
import type { Reader, Writer } from '../../kube/client.ts';
import type { Logger } from '../../log/logger.ts';
import { stop, type StepResult } from '../../reconcile/result.ts';
import type { MachineEventSink } from '../machines/events.ts';
import { nodeAccess } from '../machines/node-access.ts';
import { copyOf } from '../machines/status.ts';
import { BootstrapTokens } from './tokens/bootstrap-tokens.ts';
import type { MachineContext } from './context.ts';
import { machineAccess, type MachineAccess } from './machine-access.ts';
import { PassNotes } from './pass-notes.ts';
import { runPass } from './pass.ts';
import { PassWrites } from './record/pass-writes.ts';
import { RefusedRecords } from './record/refused-record.ts';
import { machineSteps, type MachineSteps, type MachineStepsDeps } from './steps.ts';

export interface MachineControllerDeps extends Omit<MachineStepsDeps, 'bootstrapTokens' | keyof MachineAccess> {
  /** Live reads of the control cluster. */
  readonly reader: Reader;
  readonly writer: Writer;
  readonly recorder: MachineEventSink;
}

/**
 * Turns Machines into VMs and Nodes, and back. A pass takes one copy, runs the steps on it and writes it once: at most one
 * patch of the object and one of its status, each only when something changed.
 */
export class MachineController {
  readonly #deps: MachineControllerDeps;
  readonly #steps: MachineSteps;
  readonly #refused: RefusedRecords;
  readonly #writes: PassWrites;

  constructor(deps: MachineControllerDeps) {
    const { activities, clock, random, settings, writer, recorder } = deps;
    const bootstrapTokens = new BootstrapTokens({ clock, random, extraGroups: settings.bootstrapTokenExtraGroups });
    this.#deps = deps;
    this.#steps = machineSteps({ ...deps, ...machineAccess(deps), bootstrapTokens });
    this.#refused = new RefusedRecords({ clock, activities, random });
    this.#writes = new PassWrites({ writer, clock, recorder, refused: this.#refused });
  }

  /** One pass over one Machine. What it throws is retried with back-off. */
  async reconcile(key: string, signal: AbortSignal, log: Logger): Promise<StepResult> {
    const { machines, activities } = this.#deps;
    const observed = machines.get(key);
    if (observed === undefined) return stop;

    const { creation, deletion } = this.#steps;
    const steps = isBeingDeleted(observed) ? deletion : creation;
    try {
      return await runPass(steps, this.#context(key, observed, signal, log), this.#writes);
    } finally {
      // Machines may vanish during a pass; what it noted for one afterwards nobody would ever ask for.
      const uid = machines.get(key)?.metadata.uid;
      if (uid !== observed.metadata.uid) {
        this.forget(observed);
        activities.forgetAll(key, uid);
      }
    }
  }

  /** A Node of this Machine is gone, and was last seen like this. One that a cluster has forgotten that was set back was not deleted. */
  nodeGone(machine: Machine, node: Node): void {
    if (this.#deps.outages().some(({ isSetBack }) => isSetBack)) return;
    this.#steps.lostNodes.noteDeleted(machine, node);
  }

  /** What keeps machines from going on, for metrics. */
  get waits(): Pick<MachineSteps, 'drains' | 'retries'> {
    return this.#steps;
  }

  /** Drops what was remembered of a Machine that is gone. */
  forget({ metadata: { uid } }: Machine): void {
    this.#steps.forget(uid);
    this.#refused.forget(uid);
  }

  #context(key: string, observed: Machine, signal: AbortSignal, log: Logger): MachineContext {
    const target = this.#deps.targets.of(observed);
    const nodes = target === undefined ? undefined : nodeAccess(target, this.#deps.machines);
    return { key, observed, machine: copyOf(observed), signal, log, pass: new PassNotes(), nodes };
  }
}
