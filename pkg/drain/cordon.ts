import { CORDONED_BY_MAINTENANCE_ANNOTATION } from '../apis/machine/v1alpha1/labels.ts';
import type { Node, Taint } from '../apis/wire.ts';
import { toTimestamp, type Clock } from '../base/clock/clock.ts';
import { ApiError, isNotFound } from '../kube/client/errors.ts';
import { mergePatchIfUnchanged, strategicPatch, type Patch } from '../kube/client/patch.ts';
import { nodes } from '../kube/client/resource.ts';
import { conditionOf } from '../work/reconcile/conditions.ts';
import type { Barrier, DrainCondition, DrainRequest } from './drain.ts';
import { cachedNode, readNode } from './node.ts';

/** Annotation of a Node whose cordon is ours, and is lifted should its machine be kept. */
export const CORDON_MARK = { [CORDONED_BY_MAINTENANCE_ANNOTATION]: 'true' };

/** Writes of one thing to a Node that others keep changing; kubelets and controllers write Nodes all the time. */
const WRITE_TRIES = 5;

/** Sets the requested condition on the Node, if any. False when the Node is gone. Throws ApiError, GateClosedError. */
export function announce(request: DrainRequest, clock: Clock, signal: AbortSignal): Promise<boolean> {
  const { nodeCondition } = request;
  if (nodeCondition === undefined) return Promise.resolve(true);
  return write(request, (node) => conditionPatch(node, nodeCondition, clock), cachedNode(request), signal);
}

/** Keeps new pods off the Node. False when the Node is gone. Throws ApiError, GateClosedError. */
export function raiseBarrier(request: DrainRequest, clock: Clock, signal: AbortSignal): Promise<boolean> {
  const { barrier } = request;
  if (barrier === 'cordon') return write(request, cordonPatch, schedulableNode(request), signal);
  if (barrier === 'deletion-cordon') return cordonForDeletion(request, signal);
  if (barrier === 'marked-cordon') return write(request, markedCordonPatch, schedulableNode(request), signal);
  // Taints have no merge key: the whole list is written, over a list that was read live.
  return write(request, (node) => taintPatch(node, barrier.taint, clock), undefined, signal);
}

function conditionPatch(node: Node, wanted: DrainCondition, clock: Clock): Patch | undefined {
  const present = conditionOf(node.status?.conditions, wanted.type);
  if (present?.status === wanted.status) return undefined;
  const now = toTimestamp(clock.now());
  const condition = { ...wanted, lastTransitionTime: now, lastHeartbeatTime: now };
  return strategicPatch(node, { status: { conditions: [condition] } }, 'status');
}

/** A deletion does not wait for the mark. */
async function cordonForDeletion(request: DrainRequest, signal: AbortSignal): Promise<boolean> {
  try {
    return await write(request, markedCordonPatch, schedulableNode(request), signal);
  } catch (err) {
    if (!(err instanceof ApiError) || signal.aborted) throw err;
    return await write(request, cordonPatch, schedulableNode(request), signal);
  }
}

/** The Node from the cache, unless it is cordoned there: that may have been lifted since, which a live read tells. */
function schedulableNode(request: DrainRequest): Node | undefined {
  const cached = cachedNode(request);
  return cached?.spec?.unschedulable === true ? undefined : cached;
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
 * Sends the patch that `build` makes of the Node, first of `known`, then of live reads for as long as preconditions fail.
 * A patch is refused when the Node changed or when its name belongs to another; the live read tells which.
 */
async function write(
  request: DrainRequest,
  build: (node: Node) => Patch | undefined,
  known: Node | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  let node = known;
  for (let tries = 1; ; tries++) {
    node ??= await readNode(request, signal);
    if (node === undefined) return false;
    const patch = build(node);
    if (patch === undefined) return true;
    try {
      await request.target.writer.patch('change', nodes, { name: request.nodeName }, patch, { signal });
      return true;
    } catch (err) {
      if (isNotFound(err)) return false;
      if (!ApiError.is(err, 'Conflict', 'Invalid') || tries === WRITE_TRIES) throw err;
      node = undefined;
    }
  }
}
