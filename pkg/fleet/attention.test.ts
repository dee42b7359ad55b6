import { expect, test } from '@jest/globals';

import { attentionOf } from './attention.ts';

test.each([
  { reason: 'Running', want: 'ok' },
  { reason: 'WaitingForNode', want: 'progressing' },
  { reason: 'Draining', want: 'progressing' },
  { reason: 'PreparingDeletion', want: 'progressing' },
  { reason: 'DrainBlocked', want: 'attention' },
  { reason: 'ResourceExhausted', want: 'attention' },
  { reason: 'InMaintenance', want: 'attention' },
])('$reason is $want', ({ reason, want }) => {
  expect(attentionOf({ reason })).toBe(want);
});
