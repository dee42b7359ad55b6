import { refOf } from '../../../apis/meta.ts';
import {
  CANDIDATE_FOR_SET_ANNOTATION,
  CANDIDATE_FOR_UPDATE_LABEL,
  PREFER_NO_SCHEDULE_KEY,
  SCALE_DOWN_DISABLED_ANNOTATION as SCALE_DOWN_DISABLED,
  SCALE_DOWN_DISABLED_BY_US_ANNOTATION as SCALE_DOWN_DISABLED_BY_US,
  SELECTED_FOR_UPDATE_LABEL,
  UPDATE_FAILED_REASON_ANNOTATION,
  UPDATE_RESULT_LABEL,
  UPDATED_FOR_SET_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import type { Node } from '../../../apis/wire.ts';
import { mergePatch, mergePatchIfUnchanged } from '../../../kube/client/patch.ts';
import { machineSets, nodes } from '../../../kube/client/resource.ts';
import type { Target } from '../../../kube/targets/targets.ts';
import {
  hasOutdatedNote,
  hasRolloutTaint,
  isBeforeUpdate,
  isEmptyForUpdate,
  isScaleDownDisabledByUs,
  ROLLOUT_TAINT,
  updateNote,
  updateRelease,
  withoutRolloutTaint,
  type NodeMarksChange,
} from '../../machine-facts/rollout-marks.ts';
import type { MachineDeploymentDeps } from '../step.ts';

/** What a Node should carry because of a rollout; undefined leaves it alone. */
export interface RolloutMarks {
  readonly taint?: boolean;
  readonly holdScaleDown?: boolean;
  /** Name of the set whose template waits for it, in place. */
  readonly candidate?: string | false;
  /** Only what is missing has this: the note of an update is taken off that is not the last one any more. */
  readonly forgetsUpdate?: true;
}

/**
 * What is missing on a Node for it to carry `marks`; undefined when nothing is. `isHeldOtherwise`: preserved, or in maintenance. A Node that
 * is being updated in place keeps its taint until it is given back: it says that the update is that of a rollout. Any other loses the label
 * of a candidate with it. An outdated note goes, whatever is asked for: that it is can no longer be told once the Node waits for its next update,
 * as another manager may let it.
 */
export function missingNodeMarks(node: Node, marks: RolloutMarks, isHeldOtherwise: boolean): RolloutMarks | undefined {
  const isTainted = hasRolloutTaint(node);
  const changesTaint =
    marks.taint !== undefined && marks.taint !== isTainted && (marks.taint || !isEmptyForUpdate(node));
  const taint = changesTaint && marks.taint !== undefined ? { taint: marks.taint } : {};
  // Whoever holds it: what is not ours must be there afterwards.
  const isHeld = node.metadata.annotations?.[SCALE_DOWN_DISABLED] === 'true';
  const changesHold =
    (marks.holdScaleDown === true && !isHeld) ||
    (marks.holdScaleDown === false && isScaleDownDisabledByUs(node) && !isHeldOtherwise);
  const hold = changesHold && marks.holdScaleDown !== undefined ? { holdScaleDown: marks.holdScaleDown } : {};
  const candidate = missingCandidate(node, marks.candidate ?? (taint.taint === false ? false : undefined));
  const others = { ...(candidate !== undefined && { candidate }), ...(hasOutdatedNote(node) && FORGETS_UPDATE) };
  const missing: RolloutMarks = { ...taint, ...hold, ...others };
  return Object.keys(missing).length === 0 ? undefined : missing;
}

const FORGETS_UPDATE = { forgetsUpdate: true } as const;

/** The set that is noted on a chosen Node stays once it is empty: from then on it may be updated to its template. */
function missingCandidate(node: Node, wanted: string | false | undefined): string | false | undefined {
  const { labels = {}, annotations = {} } = node.metadata;
  const isCandidate = labels[CANDIDATE_FOR_UPDATE_LABEL] !== undefined;
  if (wanted === undefined || wanted === false) return isCandidate ? wanted : undefined;
  const noted = annotations[CANDIDATE_FOR_SET_ANNOTATION];
  const isOpen = isBeforeUpdate(node) && noted !== undefined;
  const isChosen =
    (labels[SELECTED_FOR_UPDATE_LABEL] !== undefined && !isOpen) || labels[UPDATE_RESULT_LABEL] !== undefined;
  if (isChosen) return isCandidate ? undefined : (noted ?? wanted);
  return isCandidate && noted === wanted ? undefined : wanted;
}

/** Notes on the set that its Nodes carry the taint (once per set, as in the original), or no longer. */
export async function recordTaint(
  { writer }: Pick<MachineDeploymentDeps, 'writer'>,
  set: MachineSet,
  isTainted: boolean,
  signal: AbortSignal,
): Promise<void> {
  const patch = mergePatch(set, { metadata: { annotations: { [PREFER_NO_SCHEDULE_KEY]: isTainted ? 'True' : null } } });
  await writer.patch('change', machineSets, refOf(set), patch, { signal });
}

export function isTaintRecorded({ metadata }: MachineSet): boolean {
  return metadata.annotations?.[PREFER_NO_SCHEDULE_KEY] !== undefined;
}

/**
 * Writes `marks` to one Node. Taints have no merge key: they are replaced as a list, and only as it was looked at; and so is whose its next
 * update is, for by now it may be empty. A Node that has changed since makes it throw a Conflict, and the write has to be decided anew.
 */
export async function markNode(
  target: Target,
  node: Node,
  { taint, holdScaleDown, candidate, forgetsUpdate }: RolloutMarks,
  signal: AbortSignal,
): Promise<void> {
  const hold = holdScaleDown === true ? 'true' : null;
  const annotations = {
    ...(holdScaleDown !== undefined && { [SCALE_DOWN_DISABLED]: hold, [SCALE_DOWN_DISABLED_BY_US]: hold }),
    ...(candidate !== undefined && { [CANDIDATE_FOR_SET_ANNOTATION]: candidate === false ? null : candidate }),
    ...(forgetsUpdate === true && { [UPDATED_FOR_SET_ANNOTATION]: null }),
  };
  const labels = candidate === undefined ? {} : { [CANDIDATE_FOR_UPDATE_LABEL]: candidate === false ? null : 'true' };
  const metadata = { annotations, labels };
  const others = withoutRolloutTaint(node);
  const spec = taint === undefined ? {} : { spec: { taints: taint ? [...others, ROLLOUT_TAINT] : others } };
  const patch =
    taint === undefined && candidate === undefined && forgetsUpdate === undefined
      ? mergePatch(node, { metadata })
      : mergePatchIfUnchanged(node, { metadata, ...spec });
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
 * Asks for one more update of a Node, to the template of `set`, in the place of giving it back: it stays empty. Does nothing when its update
 * has not succeeded.
 */
export async function reselectNode(target: Target, node: Node, set: string, signal: AbortSignal): Promise<void> {
  const { name, labels } = node.metadata;
  if (labels?.[UPDATE_RESULT_LABEL] !== 'successful') return;
  const metadata = {
    labels: { [CANDIDATE_FOR_UPDATE_LABEL]: 'true', [SELECTED_FOR_UPDATE_LABEL]: 'true', [UPDATE_RESULT_LABEL]: null },
    annotations: {
      [CANDIDATE_FOR_SET_ANNOTATION]: set,
      [UPDATED_FOR_SET_ANNOTATION]: updatedFor(node, set),
      [UPDATE_FAILED_REASON_ANNOTATION]: null,
    },
  };
  const patch = mergePatchIfUnchanged(node, { metadata });
  await target.writer.patch('destroy', nodes, { name }, patch, { signal, clusters: [target.cluster] });
}

/**
 * Takes back that a Node was chosen for another template than that of `set`. Does nothing when it is empty: by now it may be updated. Whoever
 * drains it ends that, and uncordons it.
 */
export async function withdrawNode(target: Target, node: Node, set: string, signal: AbortSignal): Promise<void> {
  const noted = notedOn(node);
  if (noted === undefined || noted === set || !isBeforeUpdate(node)) return;
  const change = {
    labels: { [CANDIDATE_FOR_UPDATE_LABEL]: null, [SELECTED_FOR_UPDATE_LABEL]: null },
    annotations: { [CANDIDATE_FOR_SET_ANNOTATION]: null },
  };
  const patch = mergePatchIfUnchanged(node, { metadata: change });
  await target.writer.patch('change', nodes, { name: node.metadata.name }, patch, { signal });
}

/** Gives a Node back that was updated in place. Does nothing when its update has not succeeded. */
export async function releaseUpdatedNode(target: Target, node: Node, signal: AbortSignal): Promise<void> {
  await release(target, node, updateRelease(node), signal);
}

/**
 * The same of a Node that was updated to another template than that of its Machine's set, which is noted: else a rollback would take it for one
 * that was never updated. It keeps the taint of the old ones, and with it whose its next update is.
 */
export async function releaseOutdatedNode(
  target: Target,
  node: Node,
  signal: AbortSignal,
  { metadata }: Machine,
): Promise<void> {
  const set = metadata.ownerReferences?.find(({ controller }) => controller === true)?.name ?? '';
  const change = updateRelease(node);
  const taint = hasRolloutTaint(node) ? [ROLLOUT_TAINT] : [];
  const taints = [...(change?.spec?.taints ?? []), ...taint];
  const annotations = { ...change?.metadata.annotations, [UPDATED_FOR_SET_ANNOTATION]: updatedFor(node, set) };
  const noted = change && { metadata: { ...change.metadata, annotations }, spec: { ...change.spec, taints } };
  await release(target, node, noted, signal);
}

function notedOn({ metadata }: Node): string | undefined {
  return metadata.annotations?.[CANDIDATE_FOR_SET_ANNOTATION];
}

/**
 * The template that a Node was updated to, the set of its Machine, and when: who moves the Machine on, and updates the Node, may not know of the
 * note. Null: that set has this template, as where the last rollout was undone in the middle of an update, and then done again.
 */
function updatedFor(node: Node, set: string): string | null {
  const noted = notedOn(node) ?? '';
  return noted === set ? null : updateNote(node, { to: noted, of: set });
}

async function release(
  target: Target,
  node: Node,
  change: NodeMarksChange | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (change === undefined) return;
  const { name } = node.metadata;
  await target.writer.patch('change', nodes, { name }, mergePatchIfUnchanged(node, change), { signal });
}
