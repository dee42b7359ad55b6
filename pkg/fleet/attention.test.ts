import { expect, test } from '@jest/globals';

import type { BlockedPod } from '../drain/drain.ts';
import { describeProgress } from '../drain/progress-text.ts';
import { attentionOf } from './attention.ts';

test.each<{ reason: BlockedPod['reason']; detail: string; needs: boolean }>([
  { reason: 'misconfigured-disruption-budget', detail: 'b', needs: true },
  { reason: 'disruption-budget', detail: 'b', needs: true },
  { reason: 'terminating', detail: 'finalizer x', needs: true },
  { reason: 'volume-detach', detail: 'v', needs: false },
  { reason: 'turn', detail: '', needs: false },
  { reason: 'completion', detail: '', needs: false },
  { reason: 'ending', detail: '2026', needs: false },
])('a drain that waits for $reason needs attention: $needs', ({ reason, detail, needs }) => {
  const message = describeProgress({ remainingPods: 1, blocked: [{ pod: 'ns/a', reason, detail }] });

  expect(attentionOf({ reason: 'Draining', message }) === 'attention').toBe(needs);
});

test.each([
  { reason: 'Running', want: 'ok' },
  { reason: 'WaitingForNode', want: 'progressing' },
  { reason: 'ResourceExhausted', want: 'attention' },
  { reason: 'InMaintenance', want: 'attention' },
])('$reason is $want', ({ reason, want }) => {
  expect(attentionOf({ reason, message: 'x' })).toBe(want);
});
