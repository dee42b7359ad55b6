import { type ObjectMeta, isBeingDeleted } from '../../../apis/meta.ts';
import { hasFinalizer } from '../../../apis/finalizers.ts';
import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { NODE_FINALIZER, NOT_MANAGED_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../../apis/wire.ts';
import { isReady } from '../../machine-facts/node-health.ts';
import { isRemovedWith, type MachineIndex } from '../../machine-facts/node-owner.ts';
import type { Collaborators } from '../collaborators.ts';

/** A DELETE takes no longer at the API server than this, its `--request-timeout`. */
const REQUEST_TIMEOUT_MS = 60_000;

/**
 * Whether the deletion of a Node, last seen like this, was one of a Node of this machine that our finalizer did not keep: it was
 * not on it, or came `protectedForMs` ago, which a DELETE on its way does not notice: both succeed, and the Node is gone without
 * ever being marked as deleted (kubernetes/kubernetes#77988).
 *
 * One that was not ready, or whose machine is still Unknown, may have been deleted with a whole zone, by somebody who does not see its VM: that is
 * a matter of health, which has its limits, or of the time to join.
 */
export function wasUnprotected(node: Node, machine: Machine, machines: MachineIndex, protectedForMs: number): boolean {
  if (!isManaged(node) || isBeingDeleted(machine) || !isRemovedWith(node, machine, machines)) return false;
  if (!isReady(node) || phaseOf(machine) === 'Unknown') return false;
  if (!hasFinalizer(node, NODE_FINALIZER)) return true;
  return !isBeingDeleted(node) && protectedForMs < REQUEST_TIMEOUT_MS;
}

/** Whether a Node is not excepted from being managed. */
export function isManaged({ metadata }: Node): boolean {
  return metadata.annotations?.[NOT_MANAGED_ANNOTATION] === undefined;
}

type LostNode = Pick<ObjectMeta, 'name' | 'uid'>;

type Deps = Pick<Collaborators, 'clock'> & { readonly machines: MachineIndex };

/** Nodes that our finalizer did not keep from being deleted, by the UID of their Machine. */
export class LostNodes {
  readonly #deps: Deps;
  /** Nodes that were given our finalizer by this process, and when (monotonic). */
  readonly #protected = new Map<string, { readonly uid: string; readonly atMs: number }>();
  readonly #lost = new Map<string, LostNode>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** A Node of this Machine is given our finalizer. */
  protect(machine: Machine, { metadata: { uid } }: Node): void {
    this.#protected.set(machine.metadata.uid, { uid, atMs: this.#deps.clock.monotonicMs() });
  }

  /**
   * The watch has delivered that a Node of this Machine is gone, right after it was like this: notes it for step `node-deleted`, unless our
   * finalizer should have kept it.
   */
  noteDeleted(machine: Machine, node: Node): void {
    const { clock, machines } = this.#deps;
    const { name, uid } = node.metadata;
    const protection = this.#protected.get(machine.metadata.uid);
    const protectedForMs = protection?.uid === uid ? clock.monotonicMs() - protection.atMs : Infinity;
    if (wasUnprotected(node, machine, machines, protectedForMs)) this.#lost.set(machine.metadata.uid, { name, uid });
  }

  /** The Node of this Machine whose deletion was seen. */
  of({ metadata: { uid } }: Machine): LostNode | undefined {
    return this.#lost.get(uid);
  }

  /** It is there all the same, or there anew. */
  noteSeen({ metadata: { uid } }: Machine): void {
    this.#lost.delete(uid);
  }

  forget(uid: string): void {
    this.#protected.delete(uid);
    this.#lost.delete(uid);
  }
}
