import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import { keyOf, refOf } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { ignoreNotFound, isConflict, isNotFound } from '../../../kube/client/errors.ts';
import { machines as machineResource, nodes } from '../../../kube/client/resource.ts';
import type { Target } from '../../../kube/targets/targets.ts';
import { recordedNodeOf } from '../../machine-facts/recorded-node.ts';
import { isHeldOtherwise } from '../../machine-facts/rollout-marks.ts';
import type { MachineDeploymentDeps } from '../step.ts';
import { couldNotMarkNodes } from '../events.ts';
import { Refusals } from '../../replicas/refusals.ts';
import { markNode, missingNodeMarks, type RolloutMarks } from './rollout-node-marks.ts';

/** How many Nodes are written at most in one pass: scaling must not wait behind a thousand Nodes. */
const NODES_A_PASS = 100;
/** A kubelet writes its Node too: how often a write that met a change is decided anew before the Node counts as refused. */
const CONFLICT_TRIES = 5;
const CONFLICT_PAUSE_MS = 50;

type NodeMarkerDeps = Pick<
  MachineDeploymentDeps,
  'machines' | 'targets' | 'reader' | 'leadsMachines' | 'recorder' | 'clock' | 'log' | 'random'
>;

export interface Marked {
  /** Some Nodes were not tried yet: come back at once, and do nothing before that relies on the marks. */
  readonly hasMore: boolean;
  /** All Nodes carry the marks, refused ones included: only then may the work be noted as done. */
  readonly isDone: boolean;
}

export interface NodeOfMachine {
  readonly machine: Machine;
  readonly node: Node | undefined;
}

/** Of several groups of Nodes, which may be none. */
export function allMarked(...groups: readonly Marked[]): Marked {
  return { hasMore: groups.some(({ hasMore }) => hasMore), isDone: groups.every(({ isDone }) => isDone) };
}

/** One write of a rollout to a Node, decided over the Node as it is given: as the cache has it, and after a Conflict as a live read shows it. */
export type NodeWrite = (target: Target, node: Node, signal: AbortSignal, machine: Machine) => Promise<void>;

interface Work {
  readonly machine: Machine;
  readonly target: Target;
  readonly node: Node;
  readonly write: NodeWrite;
}

/**
 * Brings Nodes to carry what a rollout puts on them, and takes them through an update in place. A Node that refuses (403, 422, a webhook) does not stop the rollout: it is left
 * alone for a while that doubles with each refusal, up to five minutes, and then tried again for as long as somebody asks.
 */
export class NodeMarker {
  readonly #deps: NodeMarkerDeps;
  readonly #refusals: Refusals;

  constructor(deps: NodeMarkerDeps) {
    this.#deps = deps;
    this.#refusals = new Refusals(deps);
  }

  /** Writes what is missing on the Nodes of `machines`, as far as the cache shows it; as `write` otherwise. */
  mark(
    owner: MachineDeployment,
    machines: readonly Machine[],
    marks: RolloutMarks,
    signal: AbortSignal,
  ): Promise<Marked> {
    return this.markEach(owner, new Map(machines.map((machine) => [machine, marks])), signal);
  }

  /** The same, of Machines whose Nodes should carry different marks. */
  markEach(owner: MachineDeployment, marks: ReadonlyMap<Machine, RolloutMarks>, signal: AbortSignal): Promise<Marked> {
    return this.#writeAll(
      owner,
      [...marks].flatMap(([machine, its]) => this.#missing(machine, its)),
      signal,
    );
  }

  /** Does `write` to the Node of each machine. `owner` is who comes back for the rest. Throws GateClosedError. */
  write(
    owner: MachineDeployment,
    list: readonly NodeOfMachine[],
    write: NodeWrite,
    signal: AbortSignal,
  ): Promise<Marked> {
    const works = list.flatMap(({ machine, node }): Work[] => {
      const target = this.#deps.targets.of(machine);
      return target === undefined || node === undefined ? [] : [{ target, machine, node, write }];
    });
    return this.#writeAll(owner, works, signal);
  }

  /** Whether a Node refused a moment ago: what is asked of it now is not tried. */
  isLeftAlone(node: Node): boolean {
    return !this.#refusals.isDue(node.metadata.uid);
  }

  async #writeAll(deployment: MachineDeployment, behind: readonly Work[], signal: AbortSignal): Promise<Marked> {
    const owner = keyOf(deployment);
    const due = behind.filter(({ node }) => !this.isLeftAlone(node));
    let count = 0;
    await this.#refusals.changeEach(
      due.slice(0, NODES_A_PASS),
      {
        owner,
        idOf: ({ node }) => node.metadata.uid,
        nameOf: ({ node }) => node.metadata.name,
        change: (work) => this.#write(work, signal),
        isRefusal: (err) => !signal.aborted && !(err instanceof GateClosedError),
      },
      (refused) => {
        const [first] = refused;
        if (first === undefined) return;
        count = refused.length;
        const fields = { key: owner, nodes: refused.length, node: first.name, err: first.cause };
        this.#deps.log.warn(fields, 'could not update nodes for a rollout');
        const newRefusals = refused.filter(({ isNew }) => isNew);
        if (newRefusals.length > 0) this.#deps.recorder.event(couldNotMarkNodes(deployment, newRefusals));
      },
    );
    return {
      hasMore: due.length > NODES_A_PASS,
      isDone: due.length === behind.length && due.length <= NODES_A_PASS && count === 0,
    };
  }

  /** After how many milliseconds the first refused Node of `owner` is tried again; undefined when none waits. */
  dueInMs(owner: string): number | undefined {
    return this.#refusals.dueInMs(owner);
  }

  #missing(machine: Machine, marks: RolloutMarks): Work[] {
    const target = this.#deps.targets.of(machine);
    const node = recordedNodeOf(this.#deps, machine);
    if (target === undefined || node === undefined) return [];
    const missingOn = (one: Node): RolloutMarks | undefined => missingNodeMarks(one, marks, isHeldOtherwise(machine));
    if (missingOn(node) === undefined) return [];
    const write: NodeWrite = async (to, one, signal) => {
      const missing = missingOn(one);
      if (missing?.holdScaleDown !== false || (await this.#isForRollouts(machine, signal))) {
        if (missing !== undefined) await markNode(to, one, missing, signal);
        return;
      }
      const { holdScaleDown: _kept, ...others } = missing;
      if (Object.keys(others).length > 0) await markNode(to, one, others, signal);
    };
    return [{ target, machine, node, write }];
  }

  /**
   * Whether nothing but a rollout keeps the autoscaler from the Node. A machine controller of another process may have put that there for a
   * machine that it preserves, which our cache of Machines shows later than the Node, and does so once.
   */
  async #isForRollouts({ metadata }: Machine, signal: AbortSignal): Promise<boolean> {
    const { reader, leadsMachines } = this.#deps;
    if (leadsMachines()) return true;
    const live = await reader.get(machineResource, refOf({ metadata }), { signal }).catch(ignoreNotFound);
    return live?.metadata.uid === metadata.uid && !isHeldOtherwise(live);
  }

  /** A Node that is gone needs nothing, nor does another one that has its name by now. */
  async #write({ target, machine, node: cached, write }: Work, signal: AbortSignal): Promise<void> {
    const { name, uid } = cached.metadata;
    let node = cached;
    for (let tries = 1; ; tries++) {
      try {
        if (tries > 1) node = await target.reader.get(nodes, { name }, { signal });
        if (node.metadata.uid === uid) await write(target, node, signal, machine);
        return;
      } catch (err) {
        if (isNotFound(err)) return;
        if (!isConflict(err) || tries === CONFLICT_TRIES) throw err;
        await this.#deps.clock.sleep(CONFLICT_PAUSE_MS * tries, signal);
      }
    }
  }
}
