import { refOf } from '../../apis/meta.ts';
import {
  CANDIDATE_FOR_UPDATE_LABEL,
  CRITICAL_COMPONENTS_TAINT,
  PREFER_NO_SCHEDULE_KEY,
  SCALE_DOWN_DISABLED_ANNOTATION as SCALE_DOWN_DISABLED,
  SCALE_DOWN_DISABLED_BY_US_ANNOTATION as SCALE_DOWN_DISABLED_BY_US,
  SELECTED_FOR_UPDATE_LABEL,
  UPDATE_FAILED_REASON_ANNOTATION,
  UPDATE_RESULT_LABEL,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { Node, Taint } from '../../apis/wire.ts';
import { mergePatch, mergePatchIfUnchanged } from '../../kube/patch.ts';
import { machineSets, nodes } from '../../kube/resource.ts';
import type { Target } from '../../targets/targets.ts';
import type { MachineDeploymentDeps } from './deps.ts';

/** Makes the scheduler prefer Nodes of the new template. */
const TAINT: Taint = { key: PREFER_NO_SCHEDULE_KEY, value: 'True', effect: 'PreferNoSchedule' };
/** Keeps pods off a Node that was updated in place until anyone who looks after its critical components takes it away. */
const NOT_READY_TAINT: Taint = { key: CRITICAL_COMPONENTS_TAINT, effect: 'NoSchedule' };

/** What a Node should carry because of a rollout; undefined leaves it alone. */
export interface Marks {
  readonly taint?: boolean;
  readonly holdScaleDown?: boolean;
  /** A new template waits for it, in place. */
  readonly candidate?: boolean;
}

/** What is missing on a Node for it to carry `marks`; undefined when nothing is. `isHeldOtherwise`: preserved, or in maintenance. */
export function missingNodeMarks(node: Node, marks: Marks, isHeldOtherwise: boolean): Marks | undefined {
  const taint = marks.taint !== undefined && marks.taint !== hasTaint(node) ? { taint: marks.taint } : {};
  const annotations = node.metadata.annotations ?? {};
  // Whoever holds it: what is not ours must be there afterwards.
  const isHeld = annotations[SCALE_DOWN_DISABLED] === 'true';
  const isOurs = annotations[SCALE_DOWN_DISABLED_BY_US] !== undefined;
  const changesHold =
    (marks.holdScaleDown === true && !isHeld) || (marks.holdScaleDown === false && isOurs && !isHeldOtherwise);
  const hold = changesHold && marks.holdScaleDown !== undefined ? { holdScaleDown: marks.holdScaleDown } : {};
  const isCandidate = node.metadata.labels?.[CANDIDATE_FOR_UPDATE_LABEL] !== undefined;
  const changesCandidate = marks.candidate !== undefined && marks.candidate !== isCandidate;
  const candidate = changesCandidate ? { candidate: marks.candidate } : {};
  const missing: Marks = { ...taint, ...hold, ...candidate };
  return Object.keys(missing).length === 0 ? undefined : missing;
}

/** Notes on the set that its Nodes carry the taint (once per set, as in the original), or no longer. */
export async function noteTaint(
  { writer }: Pick<MachineDeploymentDeps, 'writer'>,
  set: MachineSet,
  isTainted: boolean,
  signal: AbortSignal,
): Promise<void> {
  const patch = mergePatch(set, { metadata: { annotations: { [PREFER_NO_SCHEDULE_KEY]: isTainted ? 'True' : null } } });
  await writer.patch('change', machineSets, refOf(set), patch, { signal });
}

/** Whether the Nodes of this set were given the taint. */
export function isTaintNoted({ metadata }: MachineSet): boolean {
  return metadata.annotations?.[PREFER_NO_SCHEDULE_KEY] !== undefined;
}

/**
 * Writes `marks` to one Node. Taints have no merge key: they are replaced as a list, and only as it was looked at. A Node that has changed
 * since makes it throw a Conflict, and the write has to be decided anew.
 */
export async function markNode(
  target: Target,
  node: Node,
  { taint, holdScaleDown, candidate }: Marks,
  signal: AbortSignal,
): Promise<void> {
  const hold = holdScaleDown === true ? 'true' : null;
  const annotations =
    holdScaleDown === undefined ? {} : { [SCALE_DOWN_DISABLED]: hold, [SCALE_DOWN_DISABLED_BY_US]: hold };
  const labels = candidate === undefined ? {} : { [CANDIDATE_FOR_UPDATE_LABEL]: candidate ? 'true' : null };
  const metadata = { annotations, labels };
  const others = (node.spec?.taints ?? []).filter(({ key }) => key !== TAINT.key);
  const patch =
    taint === undefined
      ? mergePatch(node, { metadata })
      : mergePatchIfUnchanged(node, { metadata, spec: { taints: taint ? [...others, TAINT] : others } });
  await target.writer.patch('change', nodes, { name: node.metadata.name }, patch, { signal });
}

/**
 * Asks for the drain of a Node, and then its update in place. Does nothing when it waits for no update; the resourceVersion holds it to the
 * Node that was looked at.
 */
export async function selectNode(target: Target, node: Node, signal: AbortSignal): Promise<void> {
  const { name, labels } = node.metadata;
  if (labels?.[CANDIDATE_FOR_UPDATE_LABEL] === undefined) return;
  const patch = mergePatchIfUnchanged(node, { metadata: { labels: { [SELECTED_FOR_UPDATE_LABEL]: 'true' } } });
  await target.writer.patch('destroy', nodes, { name }, patch, { signal, clusters: [target.cluster] });
}

/**
 * Gives a Node back that was updated in place: its marks go, pods may come again as soon as its critical components are ready.
 * Does nothing when its update has not succeeded.
 */
export async function releaseUpdatedNode(target: Target, node: Node, signal: AbortSignal): Promise<void> {
  const { name, labels } = node.metadata;
  if (labels?.[UPDATE_RESULT_LABEL] !== 'successful') return;
  const others = (node.spec?.taints ?? []).filter(({ key }) => key !== TAINT.key && key !== NOT_READY_TAINT.key);
  const patch = mergePatchIfUnchanged(node, {
    metadata: {
      labels: { [CANDIDATE_FOR_UPDATE_LABEL]: null, [SELECTED_FOR_UPDATE_LABEL]: null, [UPDATE_RESULT_LABEL]: null },
      annotations: { [UPDATE_FAILED_REASON_ANNOTATION]: null },
    },
    spec: { unschedulable: null, taints: [...others, NOT_READY_TAINT] },
  });
  await target.writer.patch('change', nodes, { name }, patch, { signal });
}

function hasTaint(node: Node): boolean {
  return node.spec?.taints?.some(({ key }) => key === TAINT.key) ?? false;
}
