import { expect, test } from '@jest/globals';

import { node } from '../../../../test/builders.ts';
import {
  CANDIDATE_FOR_UPDATE_LABEL,
  SELECTED_FOR_UPDATE_LABEL,
  UPDATE_FAILED_REASON_ANNOTATION,
  UPDATE_RESULT_LABEL,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import { inPlaceCondition, inPlaceFacts, nextReason } from './reason.ts';

interface Case {
  /** candidate, selected. */
  readonly labels: string;
  readonly result?: string;
  readonly reason?: string;
  readonly phase?: MachinePhase;
  readonly next: string | undefined;
}

test.each<Case>([
  { labels: '', next: undefined },
  { labels: '', reason: 'UpdateSuccessful', next: undefined },
  { labels: 'selected', reason: 'CandidateForUpdate', next: undefined },
  { labels: '', reason: 'SelectedForUpdate', next: 'CandidateForUpdate' },
  { labels: 'selected', reason: 'SelectedForUpdate', next: 'CandidateForUpdate' },
  { labels: 'candidate', reason: 'SelectedForUpdate', next: 'CandidateForUpdate' },
  { labels: 'candidate', reason: 'SelectedForUpdate', result: 'successful', next: 'UpdateSuccessful' },
  { labels: '', reason: 'SelectedForUpdate', phase: 'InPlaceUpdating', next: undefined },
  { labels: 'candidate', reason: 'SelectedForUpdate', phase: 'InPlaceUpdating', next: undefined },
  { labels: '', reason: 'ReadyForUpdate', phase: 'InPlaceUpdating', next: undefined },
  { labels: '', reason: 'ReadyForUpdate', result: 'successful', phase: 'InPlaceUpdating', next: undefined },
  { labels: '', reason: 'ReadyForUpdate', phase: 'InPlaceUpdateFailed', next: undefined },
  { labels: '', reason: 'UpdateFailed', phase: 'Failed', next: undefined },
  { labels: '', reason: 'ReadyForUpdate', result: 'successful', next: 'UpdateSuccessful' },
  { labels: 'selected', reason: 'UpdateFailed', result: 'successful', next: 'UpdateSuccessful' },
  { labels: '', reason: 'ReadyForUpdate', result: 'failed', phase: 'InPlaceUpdating', next: 'UpdateFailed' },
  { labels: '', reason: 'CandidateForUpdate', result: 'successful', next: undefined },
  { labels: '', reason: 'CandidateForUpdate', result: 'failed', next: undefined },
  { labels: '', reason: 'DrainSuccessful', next: 'CandidateForUpdate' },
  { labels: 'candidate', reason: 'ReadyForUpdate', next: 'CandidateForUpdate' },
  { labels: 'selected', reason: 'UpdateFailed', phase: 'Unknown', next: 'CandidateForUpdate' },
  { labels: 'candidate', next: 'CandidateForUpdate' },
  { labels: 'candidate', reason: 'CandidateForUpdate', next: undefined },
  { labels: 'candidate', reason: 'UpdateSuccessful', next: 'CandidateForUpdate' },
  { labels: 'candidate', reason: 'UpdateSuccessful', result: 'successful', next: undefined },
  { labels: 'candidate', reason: 'UpdateSuccessful', result: 'failed', next: 'UpdateFailed' },
  { labels: 'candidate selected', next: 'CandidateForUpdate' },
  { labels: 'candidate selected', reason: 'CandidateForUpdate', next: 'SelectedForUpdate' },
  { labels: 'candidate selected', reason: 'SelectedForUpdate', next: undefined },
  { labels: 'candidate selected', reason: 'SelectedForUpdate', result: 'successful', next: undefined },
  { labels: 'candidate selected', reason: 'DrainSuccessful', next: undefined },
  { labels: 'candidate selected', reason: 'ReadyForUpdate', phase: 'InPlaceUpdating', next: undefined },
  {
    labels: 'candidate selected',
    reason: 'ReadyForUpdate',
    result: 'successful',
    phase: 'InPlaceUpdating',
    next: undefined,
  },
  {
    labels: 'candidate selected',
    reason: 'ReadyForUpdate',
    result: 'successful',
    phase: 'InPlaceUpdateSuccessful',
    next: undefined,
  },
  { labels: 'candidate selected', reason: 'ReadyForUpdate', result: 'successful', next: 'UpdateSuccessful' },
  { labels: 'candidate selected', reason: 'UpdateFailed', result: 'successful', next: 'UpdateSuccessful' },
  { labels: 'candidate', reason: 'CandidateForUpdate', result: 'successful', next: 'UpdateSuccessful' },
  {
    labels: 'candidate selected',
    reason: 'ReadyForUpdate',
    result: 'failed',
    phase: 'InPlaceUpdating',
    next: 'UpdateFailed',
  },
  { labels: 'candidate selected', reason: 'UpdateFailed', result: 'failed', next: undefined },
  { labels: 'candidate selected', reason: 'UpdateFailed', next: undefined },
])('with labels "$labels", result $result, condition $reason and phase $phase: $next', (given) => {
  const n = node((built) => {
    if (given.labels.includes('candidate')) built.metadata.labels[CANDIDATE_FOR_UPDATE_LABEL] = 'true';
    if (given.labels.includes('selected')) built.metadata.labels[SELECTED_FOR_UPDATE_LABEL] = 'true';
    if (given.result !== undefined) built.metadata.labels[UPDATE_RESULT_LABEL] = given.result;
    if (given.reason !== undefined) {
      built.status.conditions.push({ type: 'InPlaceUpdate', status: 'True', reason: given.reason });
    }
  });

  expect(nextReason(inPlaceFacts(n, given.phase ?? 'Running'))).toBe(given.next);
});

test('a failure comes with what the agent says of it', () => {
  const n = node((built) => {
    built.metadata.annotations[UPDATE_FAILED_REASON_ANNOTATION] = 'no space left';
  });

  expect(inPlaceCondition(n, 'UpdateFailed').message).toBe('The in-place update failed. no space left');
  expect(inPlaceCondition(n, 'ReadyForUpdate')).toMatchObject({ status: 'True', reason: 'ReadyForUpdate' });
});
