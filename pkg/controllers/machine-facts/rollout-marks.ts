import {
  CANDIDATE_FOR_SET_ANNOTATION,
  CANDIDATE_FOR_UPDATE_LABEL,
  CORDONED_BY_MAINTENANCE_ANNOTATION,
  CRITICAL_COMPONENTS_TAINT,
  PREFER_NO_SCHEDULE_KEY,
  SCALE_DOWN_DISABLED_ANNOTATION as SCALE_DOWN_DISABLED,
  SCALE_DOWN_DISABLED_BY_US_ANNOTATION as SCALE_DOWN_DISABLED_BY_US,
  SELECTED_FOR_UPDATE_LABEL,
  UPDATE_FAILED_REASON_ANNOTATION,
  UPDATE_RESULT_LABEL,
  UPDATED_FOR_SET_ANNOTATION,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Node, Taint } from '../../apis/wire.ts';
import { isUnderMaintenance } from './maintenance.ts';
import { nodeConditionOf } from './node-condition.ts';
import { hasPreparationBegun } from './prepared-deletion.ts';

/** Makes the scheduler prefer Nodes of the new template. Only rollouts use its key: it also says whose the other marks of a Node are. */
export const ROLLOUT_TAINT: Taint = { key: PREFER_NO_SCHEDULE_KEY, value: 'True', effect: 'PreferNoSchedule' };
/** Keeps pods off a Node that was updated in place until anyone who looks after its critical components takes it away. */
const NOT_READY_TAINT: Taint = { key: CRITICAL_COMPONENTS_TAINT, effect: 'NoSchedule' };

/** What is changed of a Node; null removes an entry. */
export interface NodeMarksChange {
  readonly metadata: {
    readonly annotations?: Readonly<Record<string, string | null>>;
    readonly labels?: Readonly<Record<string, string | null>>;
  };
  readonly spec?: { readonly unschedulable?: null; readonly taints: readonly Taint[] };
}

export function hasRolloutTaint(node: Node): boolean {
  return node.spec?.taints?.some(({ key }) => key === ROLLOUT_TAINT.key) ?? false;
}

export function withoutRolloutTaint({ spec }: Node): readonly Taint[] {
  return (spec?.taints ?? []).filter(({ key }) => key !== ROLLOUT_TAINT.key);
}

export function isScaleDownDisabledByUs({ metadata }: Node): boolean {
  return metadata.annotations?.[SCALE_DOWN_DISABLED_BY_US] !== undefined;
}

/** Whether the Node of a Machine is kept from the autoscaler whatever its MachineDeployment does: it is preserved, or in maintenance. */
export function isHeldOtherwise(machine: Pick<Machine, 'metadata' | 'status'>): boolean {
  return (machine.status?.currentStatus?.preserveExpiryTime ?? '') !== '' || isUnderMaintenance(machine);
}

/** Whether the Node is kept empty for its Machine's sake. */
export function isEmptied(machine: Pick<Machine, 'metadata' | 'status'>): boolean {
  return isUnderMaintenance(machine) || hasPreparationBegun(machine);
}

/** Whether the Node is chosen for an update in place, or was and has not been given back to its pods yet. */
function isInUpdate({ metadata: { labels = {} } }: Node): boolean {
  return labels[CANDIDATE_FOR_UPDATE_LABEL] !== undefined && labels[SELECTED_FOR_UPDATE_LABEL] !== undefined;
}

/** Reasons of condition `InPlaceUpdate` with which a Node is kept empty, whatever its labels say. */
const UNDERWAY: ReadonlySet<string | undefined> = new Set(['SelectedForUpdate', 'DrainSuccessful', 'ReadyForUpdate']);
const BEFORE: ReadonlySet<string | undefined> = new Set([undefined, '', 'CandidateForUpdate', 'SelectedForUpdate']);
/** Reasons that stay behind: they count for as long as the label of the result is there, too. */
const OVER: ReadonlySet<string | undefined> = new Set(['UpdateSuccessful', 'UpdateFailed']);

/** Whether an update in place needs the Node cordoned: from when it was chosen until it is given back, or its labels are gone. */
export function isEmptyForUpdate(node: Node): boolean {
  const reason = nodeConditionOf(node, 'InPlaceUpdate')?.reason;
  const hasResult = node.metadata.labels?.[UPDATE_RESULT_LABEL] !== undefined;
  return isInUpdate(node) || UNDERWAY.has(reason) || (hasResult && OVER.has(reason));
}

/** Whether nobody can have begun to update the Node: `ReadyForUpdate`, once it is empty, is what tells them to. */
export function isBeforeUpdate(node: Node): boolean {
  const hasResult = node.metadata.labels?.[UPDATE_RESULT_LABEL] !== undefined;
  return !hasResult && BEFORE.has(nodeConditionOf(node, 'InPlaceUpdate')?.reason);
}

/**
 * Whether the Node was last updated to another template than that of `set`, in which its Machine was then, and is. One that has been given to
 * another set since, or updated again, as the original does without a look at this note, is not believed to run anything.
 */
export function isUpdatedToAnother(node: Node | undefined, set: string): boolean {
  if (node === undefined || hasOutdatedNote(node)) return false;
  return updateNotedOn(node).of === set;
}

/** Whether the Node shows another update that is over, and is given back, than the one that is noted on it. */
export function hasOutdatedNote(node: Node): boolean {
  const { at } = updateNotedOn(node);
  const hasResult = node.metadata.labels?.[UPDATE_RESULT_LABEL] !== undefined;
  const last = nodeConditionOf(node, 'InPlaceUpdate');
  return at !== undefined && !hasResult && last?.reason === 'UpdateSuccessful' && last.lastTransitionTime !== at;
}

/** What is noted of an update to the template of `to`, of a Node whose Machine stays in the set `of`. */
export function updateNote(node: Node, { to, of }: { readonly to: string; readonly of: string }): string {
  const at = nodeConditionOf(node, 'InPlaceUpdate')?.lastTransitionTime ?? '';
  return `${to} of ${of}${at === '' ? '' : ` at ${at}`}`;
}

function updateNotedOn({ metadata }: Node): { readonly of?: string | undefined; readonly at?: string | undefined } {
  const [, , of, , at] = metadata.annotations?.[UPDATED_FOR_SET_ANNOTATION]?.split(' ') ?? [];
  return { of, at };
}

/** Whether the Node was updated in place and its machine is well again. */
export function isUpdateOver(node: Node): boolean {
  return (
    node.metadata.labels?.[UPDATE_RESULT_LABEL] === 'successful' &&
    nodeConditionOf(node, 'InPlaceUpdate')?.reason === 'UpdateSuccessful'
  );
}

/**
 * What gives a Node back that was updated in place: its marks go, pods may come again as soon as its critical components are ready;
 * undefined when its update has not succeeded.
 */
export function updateRelease(node: Node): NodeMarksChange | undefined {
  if (node.metadata.labels?.[UPDATE_RESULT_LABEL] !== 'successful') return undefined;
  const taints = withoutRolloutTaint(node).filter(({ key }) => key !== NOT_READY_TAINT.key);
  return {
    metadata: {
      labels: { [CANDIDATE_FOR_UPDATE_LABEL]: null, [SELECTED_FOR_UPDATE_LABEL]: null, [UPDATE_RESULT_LABEL]: null },
      annotations: {
        [CANDIDATE_FOR_SET_ANNOTATION]: null,
        [UPDATED_FOR_SET_ANNOTATION]: null,
        [UPDATE_FAILED_REASON_ANNOTATION]: null,
        [CORDONED_BY_MAINTENANCE_ANNOTATION]: null,
      },
    },
    spec: { unschedulable: null, taints: [...taints, NOT_READY_TAINT] },
  };
}

/**
 * What a rollout has left on the Node of a Machine that no MachineDeployment owns any more, as a change that takes it away; undefined when
 * there is nothing, or not yet. What a person has put there stays.
 *
 * | Node                                                     | what goes                                                 |
 * |----------------------------------------------------------|-----------------------------------------------------------|
 * | chosen for an update in place, tainted by us             | nothing until it was updated; then it is given back       |
 * | tainted by us                                            | the taint, and the label of a candidate that came with it |
 * | kept from the autoscaler by us, and nothing else does so | that annotation                                           |
 */
export function leftRolloutMarks(
  machine: Pick<Machine, 'metadata' | 'status'>,
  node: Node,
): NodeMarksChange | undefined {
  const isTainted = hasRolloutTaint(node);
  const hold =
    isScaleDownDisabledByUs(node) && !isHeldOtherwise(machine)
      ? { [SCALE_DOWN_DISABLED]: null, [SCALE_DOWN_DISABLED_BY_US]: null }
      : undefined;
  if (isTainted && isEmptyForUpdate(node)) {
    const released = isUpdateOver(node) && !isEmptied(machine) ? updateRelease(node) : undefined;
    if (released === undefined) return undefined;
    const { annotations } = released.metadata;
    return { ...released, metadata: { ...released.metadata, annotations: { ...annotations, ...hold } } };
  }
  if (!isTainted) return hold && { metadata: { annotations: hold } };
  const isCandidate = node.metadata.labels?.[CANDIDATE_FOR_UPDATE_LABEL] !== undefined;
  const annotations = { ...hold, ...(isCandidate && { [CANDIDATE_FOR_SET_ANNOTATION]: null }) };
  return {
    metadata: {
      ...(Object.keys(annotations).length > 0 && { annotations }),
      ...(isCandidate && { labels: { [CANDIDATE_FOR_UPDATE_LABEL]: null } }),
    },
    spec: { taints: withoutRolloutTaint(node) },
  };
}
