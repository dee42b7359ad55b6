import { PRESERVE_ANNOTATION, PRESERVED_TAINT } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../../apis/wire.ts';
import { toTimestamp } from '../../../base/clock/clock.ts';
import type { StrategicPatch } from '../../../kube/client/patch.ts';
import { nodeConditionOf, type DesiredCondition } from '../../machine-facts/node-condition.ts';
import { releasedScaleDownHold } from '../node/scale-down-hold.ts';

const PRESERVED = 'Preserved';
/** Others read these words; they are the original's. */
const DRAINED = 'Preserved node drained successfully.';
const NOT_DRAINED = 'Preserved node could not be drained.';
const STOPPED = 'Preservation stopped.';

/** Keeps new pods off the Node of a preserved machine that has failed. */
export const PRESERVATION_BARRIER = { taint: { key: PRESERVED_TAINT, effect: 'NoSchedule' } } as const;

/** How far the Node of a preserved machine is emptied: `kept` is one that works, and is not. */
export type Emptiness = 'kept' | 'drained' | 'not-drained';

export function preservedCondition(emptiness: Emptiness, isAutomatic: boolean, expiryMs: number): DesiredCondition {
  const until = `Machine preserved until ${asGoTime(expiryMs)}.`;
  const texts: Record<Emptiness, string> = {
    kept: until,
    drained: `${DRAINED} ${until}`,
    'not-drained': `${NOT_DRAINED} ${until}`,
  };
  return {
    type: PRESERVED,
    status: emptiness === 'not-drained' ? 'False' : 'True',
    reason: isAutomatic ? 'Preserved by MCM.' : 'Preserved by user.',
    message: texts[emptiness],
  };
}

/** Whether the Node says that it was emptied for the preservation that it shows. */
export function showsDrained(node: Node): boolean {
  const condition = nodeConditionOf(node, PRESERVED);
  return condition?.status === 'True' && condition.message?.includes(DRAINED) === true;
}

export function showsPreserved(node: Node): boolean {
  return nodeConditionOf(node, PRESERVED)?.status === 'True';
}

/** Whether the Node tells of a preservation, be it over. */
export function hasShownPreservation(node: Node): boolean {
  return nodeConditionOf(node, PRESERVED) !== undefined;
}

/** Whether the Node has something of a preservation that keeps pods or the autoscaler away. */
export function hasMarks(node: Node): boolean {
  return showsPreserved(node) || untainted(node) !== undefined;
}

/** What condition `Preserved` says afterwards; undefined for a Node that never said anything. */
export function stoppedCondition(node: Node): DesiredCondition | undefined {
  if (!hasShownPreservation(node)) return undefined;
  return { type: PRESERVED, status: 'False', reason: STOPPED, message: '' };
}

/** What takes the taint of a preservation from a Node; undefined when it has none. */
export function untainted(node: Node): StrategicPatch<Node> | undefined {
  const taints = node.spec?.taints ?? [];
  const others = taints.filter(({ key }) => key !== PRESERVED_TAINT);
  return others.length === taints.length ? undefined : { metadata: {}, spec: { taints: others } };
}

/** What makes a Node as it was before: that, without our hold of the autoscaler and, if asked, without the request; undefined when it is. */
export function releasedNode(node: Node, forgetsRequest: boolean): StrategicPatch<Node> | undefined {
  const annotations: Record<string, null> = { ...releasedScaleDownHold(node) };
  if (forgetsRequest && node.metadata.annotations?.[PRESERVE_ANNOTATION] !== undefined)
    annotations[PRESERVE_ANNOTATION] = null;
  const change = untainted(node);
  return Object.keys(annotations).length === 0 ? change : { ...change, metadata: { annotations } };
}

/** As Go prints a time: `2026-01-02 03:04:05 +0000 UTC`. */
function asGoTime(ms: number): string {
  return `${toTimestamp(ms).slice(0, 19).replace('T', ' ')} +0000 UTC`;
}
