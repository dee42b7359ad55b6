import { CORDONED_BY_MAINTENANCE_ANNOTATION } from '../apis/machine/v1alpha1/labels.ts';
import type { Node, Taint } from '../apis/wire.ts';
import { toTimestamp, type Clock } from '../base/clock/clock.ts';
import { ApiError, isDenial, isNotFound } from '../kube/client/errors.ts';
import { mergePatchIfUnchanged, strategicPatch, type Patch } from '../kube/client/patch.ts';
import { nodes } from '../kube/client/resource.ts';
import { conditionOf } from '../work/reconcile/conditions.ts';
import type { Barrier, DrainCondition, DrainRequest } from './drain.ts';
import { type NodeIdentity, readNode } from './node.ts';

/** Annotation of a Node whose cordon is ours, and is lifted should its machine be kept. */
const CORDON_MARK = { [CORDONED_BY_MAINTENANCE_ANNOTATION]: 'true' };

/** Writes of one thing to a Node that others keep changing; kubelets and controllers write Nodes all the time. */
const WRITE_TRIES = 5;

/**
 * One write to the Node of a drain, which is made from the Node as it was last seen. Resolves to the Node as it is then: the next write is
 * made from that, because a cache that does not show our own write yet would have it refused. Undefined when the Node is gone. Throws
 * ApiError, GateClosedError.
 */
type NodeWrite = (request: DrainRequest, seen: Node, clock: Clock, signal: AbortSignal) => Promise<Node | undefined>;

/** Sets the requested condition on the Node, if any. */
export const announce: NodeWrite = async (request, seen, clock, signal) => {
  const { nodeCondition } = request;
  if (nodeCondition === undefined) return seen;
  return await write(request, (node) => conditionPatch(node, nodeCondition, clock), seen, signal);
};

/** Keeps new pods off the Node. */
export const raiseBarrier: NodeWrite = async (request, seen, clock, signal) => {
  const { barrier } = request;
  if (barrier === 'deletion-cordon') return await cordonForDeletion(request, seen, signal);
  if (barrier === 'cordon') return await write(request, cordonPatch, schedulable(seen), signal);
  if (barrier === 'marked-cordon') return await write(request, markedCordonPatch, schedulable(seen), signal);
  // Taints have no merge key: the whole list is written, over a list that was read live.
  return await write(request, (node) => taintPatch(node, barrier.taint, clock), undefined, signal);
};

function conditionPatch(node: Node, wanted: DrainCondition, clock: Clock): Patch | undefined {
  const present = conditionOf(node.status?.conditions, wanted.type);
  if (present?.status === wanted.status) return undefined;
  const now = toTimestamp(clock.now());
  const condition = { ...wanted, lastTransitionTime: now, lastHeartbeatTime: now };
  return strategicPatch(node, { status: { conditions: [condition] } }, 'status');
}

/** A cordon that is marked, unless the mark is refused: a deletion does not wait for that. Otherwise as a NodeWrite. */
export async function cordonForDeletion(of: NodeIdentity, seen: Node, signal: AbortSignal): Promise<Node | undefined> {
  try {
    return await write(of, markedCordonPatch, schedulable(seen), signal);
  } catch (err) {
    if (!isDenial(err)) throw err;
    return await write(of, cordonPatch, schedulable(seen), signal);
  }
}

/** Undefined of a Node that is cordoned: that may have been lifted since, which a live read tells. */
function schedulable(seen: Node): Node | undefined {
  return seen.spec?.unschedulable === true ? undefined : seen;
}

function cordonPatch(node: Node): Patch | undefined {
  return node.spec?.unschedulable === true ? undefined : strategicPatch(node, { spec: { unschedulable: true } });
}

/** Only of a Node that nobody else has cordoned meanwhile: the cordon would be theirs. */
function markedCordonPatch(node: Node): Patch | undefined {
  if (node.spec?.unschedulable === true) return undefined;
  return mergePatchIfUnchanged(node, { metadata: { annotations: CORDON_MARK }, spec: { unschedulable: true } });
}

function taintPatch(
  node: Node,
  wanted: Extract<Barrier, { taint: unknown }>['taint'],
  clock: Clock,
): Patch | undefined {
  const taints: readonly Taint[] = node.spec?.taints ?? [];
  if (taints.some(({ key, effect }) => key === wanted.key && effect === wanted.effect)) return undefined;
  const taint = { ...wanted, timeAdded: toTimestamp(clock.now()) };
  return mergePatchIfUnchanged(node, { spec: { taints: [...taints, taint] } });
}

/**
 * Sends the patch that `build` makes of the Node, first of the one that was seen, then of live reads for as long as preconditions fail.
 * A patch is refused when the Node changed or when its name belongs to another; the live read tells which.
 */
async function write(
  of: NodeIdentity,
  build: (node: Node) => Patch | undefined,
  seen: Node | undefined,
  signal: AbortSignal,
): Promise<Node | undefined> {
  let node = seen;
  for (let tries = 1; ; tries++) {
    node ??= await readNode(of, signal);
    if (node === undefined) return undefined;
    const patch = build(node);
    if (patch === undefined) return node;
    try {
      return await of.target.writer.patch('change', nodes, { name: of.nodeName }, patch, { signal });
    } catch (err) {
      if (isNotFound(err)) return undefined;
      if (!ApiError.is(err, 'Conflict', 'Invalid') || tries === WRITE_TRIES) throw err;
      node = undefined;
    }
  }
}
