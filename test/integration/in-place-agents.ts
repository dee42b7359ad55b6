import {
  CANDIDATE_FOR_UPDATE_LABEL,
  SELECTED_FOR_UPDATE_LABEL,
  UPDATE_RESULT_LABEL,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachinePhase } from '../../pkg/apis/machine/v1alpha1/phases.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import type { ReflectedInformer } from '../../pkg/kube/cache/reflected-informer.ts';
import { toTimestamp } from '../../pkg/base/clock/clock.ts';
import { isConflict, isNotFound } from '../../pkg/kube/client/errors.ts';
import { mergePatch, mergePatchIfUnchanged, statusPatch } from '../../pkg/kube/client/patch.ts';
import { machines, nodes } from '../../pkg/kube/client/resource.ts';
import type { MachineSetWorld } from './machine-set-world.ts';

const CONDITION = 'InPlaceUpdate';
const LOOK_MS = 15;

/**
 * The machine controller's part in updates in place, and the agent's on each Node, as both are specified: reasons of the
 * condition on the Node, mirrored into the Machine; the drain; the result; the phases. One step at a time, as if by several
 * processes that know of each other only what the API server tells.
 */
export class InPlaceAgents implements AsyncDisposable {
  /** Names of Nodes whose update fails. */
  readonly failing = new Set<string>();
  /** Most Nodes that were being updated at one moment. */
  mostAtOnce = 0;
  readonly #world: MachineSetWorld;
  readonly #nodes: ReflectedInformer<Node>;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;

  private constructor(world: MachineSetWorld) {
    this.#world = world;
    this.#nodes = world.user.informer(nodes, { labelSelector: `world=${world.namespace.name}` });
    this.#running = this.#run();
  }

  /** Looks after the Nodes of `world`, which must make some. */
  static start(world: MachineSetWorld): InPlaceAgents {
    return new InPlaceAgents(world);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** Nodes that are being updated, as they see it. */
  get atOnce(): number {
    return this.#nodes.list().filter(({ metadata }) => SELECTED_FOR_UPDATE_LABEL in (metadata.labels ?? {})).length;
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      this.mostAtOnce = Math.max(this.mostAtOnce, this.atOnce);
      await Promise.all(this.#nodes.list().map((node) => this.#step(node)));
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  /** The next thing that anybody would do about this Node; whoever comes too late does nothing. */
  async #step(node: Node): Promise<void> {
    const machine = this.#world.machines
      .list()
      .find(({ metadata }) => metadata.labels?.['node'] === node.metadata.name);
    if (machine === undefined) return;
    try {
      await this.#advance(node, machine);
    } catch (err) {
      if (!isConflict(err) && !isNotFound(err) && !this.#stopping.signal.aborted) throw err;
    }
  }

  async #advance(node: Node, machine: Machine): Promise<void> {
    const { labels = {} } = node.metadata;
    const reason = reasonOf(node);
    const phase = machine.status?.currentStatus?.phase;
    const result = labels[UPDATE_RESULT_LABEL];
    if (reasonOf(machine) !== reason && reason !== undefined) return this.#mirror(node, machine);
    if (phase === 'InPlaceUpdating' && result !== undefined) {
      return this.#setPhase(machine, result === 'successful' ? 'InPlaceUpdateSuccessful' : 'InPlaceUpdateFailed');
    }
    if (phase === 'InPlaceUpdateSuccessful') return this.#setPhase(machine, 'Running');
    if (phase === 'InPlaceUpdateFailed' && reason === 'UpdateFailed') return this.#setPhase(machine, 'Failed');
    const isChosen = [CANDIDATE_FOR_UPDATE_LABEL, SELECTED_FOR_UPDATE_LABEL].every((label) => label in labels);
    if (reason === 'SelectedForUpdate' && !isChosen && phase !== 'InPlaceUpdating') {
      return this.#setReason(node, 'CandidateForUpdate');
    }
    const isUnderway = phase === 'InPlaceUpdating' || reason === 'DrainSuccessful' || reason === 'ReadyForUpdate';
    if (labels[CANDIDATE_FOR_UPDATE_LABEL] === undefined && !isUnderway) return;

    if (reason === undefined || (reason === 'UpdateSuccessful' && result === undefined)) {
      return this.#setReason(node, 'CandidateForUpdate');
    }
    if (labels[SELECTED_FOR_UPDATE_LABEL] !== undefined && reason === 'CandidateForUpdate') {
      return this.#setReason(node, 'SelectedForUpdate');
    }
    if (reason === 'SelectedForUpdate') return this.#drain(node, machine);
    if (reason === 'DrainSuccessful') return this.#setReason(node, 'ReadyForUpdate');
    if (reason === 'ReadyForUpdate' && result === undefined) return this.#update(node);
    if (result === 'successful' && phase === 'Running' && reason !== 'UpdateSuccessful') {
      return this.#setReason(node, 'UpdateSuccessful');
    }
    if (result === 'failed' && reason !== 'UpdateFailed') return this.#setReason(node, 'UpdateFailed');
  }

  async #drain(node: Node, machine: Machine): Promise<void> {
    if (machine.status?.currentStatus?.phase !== 'InPlaceUpdating') return this.#setPhase(machine, 'InPlaceUpdating');
    if (node.spec?.unschedulable !== true) {
      const cordoned = mergePatch(node, { spec: { unschedulable: true } });
      await this.#world.user.writer.patch('change', nodes, { name: node.metadata.name }, cordoned);
      return;
    }
    await this.#setReason(node, 'DrainSuccessful');
  }

  /** What the agent on the Node does. */
  async #update(node: Node): Promise<void> {
    const { name } = node.metadata;
    const result = this.failing.has(name) ? 'failed' : 'successful';
    const patch = mergePatchIfUnchanged(node, { metadata: { labels: { [UPDATE_RESULT_LABEL]: result } } });
    await this.#world.user.writer.patch('change', nodes, { name }, patch);
  }

  async #setReason(node: Node, reason: string): Promise<void> {
    const now = toTimestamp(this.#world.user.clock.now());
    const others = (node.status?.conditions ?? []).filter(({ type }) => type !== CONDITION);
    const condition = { type: CONDITION, status: 'True', reason, lastHeartbeatTime: now, lastTransitionTime: now };
    const patch = statusPatch(node, { conditions: [...others, condition] });
    await this.#world.user.writer.patch('change', nodes, { name: node.metadata.name }, patch);
  }

  async #mirror(node: Node, machine: Machine): Promise<void> {
    await this.#patchStatus(machine, { conditions: node.status?.conditions ?? [] });
  }

  async #setPhase(machine: Machine, phase: MachinePhase): Promise<void> {
    const now = toTimestamp(this.#world.user.clock.now());
    const state = phase === 'Failed' || phase === 'InPlaceUpdateFailed' ? 'Failed' : 'Successful';
    await this.#patchStatus(machine, {
      currentStatus: { phase, lastUpdateTime: now },
      lastOperation: { type: 'InPlaceUpdate', state, description: phase, lastUpdateTime: now },
    });
  }

  async #patchStatus(machine: Machine, status: Record<string, unknown>): Promise<void> {
    const ref = { namespace: this.#world.namespace.name, name: machine.metadata.name };
    await this.#world.user.writer.patch('change', machines, ref, statusPatch(machine, status));
  }
}

function reasonOf({ status }: Node | Machine): string | undefined {
  const conditions: readonly { type: string; reason?: string }[] = status?.conditions ?? [];
  return conditions.find(({ type }) => type === CONDITION)?.reason;
}
