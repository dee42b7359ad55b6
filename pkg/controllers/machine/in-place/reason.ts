import {
  CANDIDATE_FOR_UPDATE_LABEL,
  SELECTED_FOR_UPDATE_LABEL,
  UPDATE_FAILED_REASON_ANNOTATION,
  UPDATE_RESULT_LABEL,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import type { Node } from '../../../apis/wire.ts';
import { nodeConditionOf, type DesiredCondition } from '../../machine-facts/node-condition.ts';

/** Type of the Node condition that tells how far an update in place has come; its status is always True, its reason tells. */
export const IN_PLACE_UPDATE = 'InPlaceUpdate';

/** How far an update in place has come, in order; the last two are ends. */
export const IN_PLACE_REASONS = [
  'CandidateForUpdate',
  'SelectedForUpdate',
  'DrainSuccessful',
  'ReadyForUpdate',
  'UpdateSuccessful',
  'UpdateFailed',
] as const;

export type InPlaceReason = (typeof IN_PLACE_REASONS)[number];

export interface InPlaceFacts {
  /** Labels on the Node: is, or is to be, updated; is to be drained now; what the agent says. */
  readonly isCandidate: boolean;
  readonly isSelected: boolean;
  readonly result: string | undefined;
  readonly reason: string | undefined;
  readonly phase: MachinePhase | '';
}

export function inPlaceFacts(node: Node, phase: MachinePhase | ''): InPlaceFacts {
  const { labels = {} } = node.metadata;
  return {
    isCandidate: CANDIDATE_FOR_UPDATE_LABEL in labels,
    isSelected: SELECTED_FOR_UPDATE_LABEL in labels,
    result: labels[UPDATE_RESULT_LABEL],
    reason: nodeConditionOf(node, IN_PLACE_UPDATE)?.reason,
    phase,
  };
}

/**
 * What the condition should say next because of the Node's labels; undefined when nothing new. Between SelectedForUpdate and
 * ReadyForUpdate it goes on by the drain, not by labels. Success is told when the machine is Running again: anyone who reads it
 * gives the Node back to its pods.
 *
 * | labels                 | condition                                    | next               |
 * |------------------------|----------------------------------------------|--------------------|
 * | not both, no result    | SelectedForUpdate, and not drained yet       | CandidateForUpdate |
 * | not both, no result    | a later one, and no update goes on           | CandidateForUpdate |
 * | no candidate           | none, CandidateForUpdate, UpdateSuccessful   |                    |
 * | candidate              | none                                         | CandidateForUpdate |
 * | candidate, no result   | UpdateSuccessful, from the last update       | CandidateForUpdate |
 * | selected               | CandidateForUpdate                           | SelectedForUpdate  |
 * | selected               | SelectedForUpdate                            |                    |
 * | result `successful`    | any other than UpdateSuccessful, and Running | UpdateSuccessful   |
 * | result `failed`        | any other than UpdateFailed                  | UpdateFailed       |
 */
export function nextReason(facts: InPlaceFacts): InPlaceReason | undefined {
  const { isCandidate, isSelected, result, reason, phase } = facts;
  if (!isCandidate && !isEmptied(reason)) return isWithdrawn(facts) ? 'CandidateForUpdate' : undefined;
  if (reason === undefined || reason === '') return 'CandidateForUpdate';
  if (reason === 'UpdateSuccessful' && result === undefined) return 'CandidateForUpdate';
  if (isSelected && reason === 'CandidateForUpdate') return 'SelectedForUpdate';
  if (isSelected && reason === 'SelectedForUpdate') return undefined;
  if (result === 'successful' && reason !== 'UpdateSuccessful' && phase === 'Running') return 'UpdateSuccessful';
  if (result === 'failed' && reason !== 'UpdateFailed') return 'UpdateFailed';
  return isWithdrawn(facts) ? 'CandidateForUpdate' : undefined;
}

/**
 * Whether somebody has taken the selection back before the Node was empty, or after its machine is as any other again. In between it may be
 * under update, and its result counts whatever has become of the other labels.
 */
export function isWithdrawn({ isCandidate, isSelected, result, reason, phase }: InPlaceFacts): boolean {
  if (isCandidate && isSelected) return false;
  if (reason === 'SelectedForUpdate') return phase !== 'InPlaceUpdating';
  return isEmptied(reason) && result === undefined && (phase === 'Running' || phase === 'Unknown');
}

/** Whether the Node was drained for an update that has not succeeded yet. */
function isEmptied(reason: string | undefined): boolean {
  return reason === 'DrainSuccessful' || reason === 'ReadyForUpdate' || reason === 'UpdateFailed';
}

const MESSAGES: Record<InPlaceReason, string> = {
  CandidateForUpdate: 'The machine is waiting for its in-place update.',
  SelectedForUpdate: 'Draining the Node for the in-place update.',
  DrainSuccessful: 'The Node was drained.',
  ReadyForUpdate: 'The Node was drained and is waiting for the in-place update.',
  UpdateSuccessful: 'The machine was updated in place.',
  UpdateFailed: 'The in-place update failed.',
};

/** Of a Node that is no candidate any more. The original knows no reason for that. */
export const CANCELED = 'The in-place update was canceled.';

/** The condition that says so; a failure comes with what the agent on the Node says of it. */
export function inPlaceCondition(node: Node, reason: InPlaceReason): DesiredCondition {
  const why = reason === 'UpdateFailed' ? failureOn(node) : '';
  const isCanceled = reason === 'CandidateForUpdate' && !(CANDIDATE_FOR_UPDATE_LABEL in (node.metadata.labels ?? {}));
  const message = isCanceled ? CANCELED : MESSAGES[reason];
  return { type: IN_PLACE_UPDATE, status: 'True', reason, message: why === '' ? message : `${message} ${why}` };
}

/** What the agent on the Node says of a failure; '' when nothing. */
export function failureOn({ metadata }: Node): string {
  return metadata.annotations?.[UPDATE_FAILED_REASON_ANNOTATION] ?? '';
}
