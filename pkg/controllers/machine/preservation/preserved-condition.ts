import { PRESERVE_ANNOTATION, PRESERVED_TAINT } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Node, Taint } from '../../../apis/wire.ts';
import { toTimestamp } from '../../../clock/clock.ts';
import { nodeConditionOf, type DesiredCondition } from '../../machines/node-condition.ts';
import { releasedScaleDownHold } from '../node/scale-down-hold.ts';

/** Type of the Node condition that tells of a preservation. */
const PRESERVED = 'Preserved';
/** Others read these words; they are the original's. */
const DRAINED = 'Preserved node drained successfully.';
const NOT_DRAINED = 'Preserved node could not be drained.';
const STOPPED = 'Preservation stopped.';

/** Keeps new pods off the Node of a preserved machine that has failed. */
export const PRESERVATION_BARRIER = { taint: { key: PRESERVED_TAINT, effect: 'NoSchedule' } } as const;

/** How far the Node of a preserved machine is emptied: `kept` is one that works, and is not. */
export type Emptiness = 'kept' | 'drained' | 'not-drained';

/** What condition `Preserved` says of a preserved machine. */
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

/** What condition `Preserved` says afterwards; undefined for a Node that never said anything. */
export function stoppedCondition(node: Node): DesiredCondition | undefined {
  if (nodeConditionOf(node, PRESERVED) === undefined) return undefined;
  return { type: PRESERVED, status: 'False', reason: STOPPED, message: '' };
}

/** The Node's taints without the one of a preservation; undefined when it has none. */
export function untainted(node: Node): readonly Taint[] | undefined {
  const taints = node.spec?.taints ?? [];
  const others = taints.filter(({ key }) => key !== PRESERVED_TAINT);
  return others.length === taints.length ? undefined : others;
}

/** What has to go from a Node's annotations: our hold of the autoscaler and, if asked, the request; undefined when nothing. */
export function releasedAnnotations(node: Node, forgetsRequest: boolean): Record<string, null> | undefined {
  const gone: Record<string, null> = { ...releasedScaleDownHold(node) };
  if (forgetsRequest && node.metadata.annotations?.[PRESERVE_ANNOTATION] !== undefined)
    gone[PRESERVE_ANNOTATION] = null;
  return Object.keys(gone).length === 0 ? undefined : gone;
}

/** As Go prints a time: `2026-01-02 03:04:05 +0000 UTC`. */
function asGoTime(ms: number): string {
  return `${toTimestamp(ms).slice(0, 19).replace('T', ' ')} +0000 UTC`;
}
