import { expect, test } from '@jest/globals';

import { describeLength, describeOutage, outageReasonOf } from './outage.ts';

test.each([
  { ms: 0, want: '0 s' },
  { ms: 59_400, want: '59 s' },
  { ms: 59_500, want: '1 min 0 s' },
  { ms: 725_000, want: '12 min 5 s' },
  { ms: 3 * 3_600_000 + 120_000, want: '3 h 2 min' },
])('$ms ms are told as $want', ({ ms, want }) => {
  expect(describeLength(ms)).toBe(want);
});

test.each([
  {
    what: {},
    reason: 'unreachable',
    begins: 'API server of cluster "target" unreachable since 2026-01-01T00:00:00Z (why)',
  },
  {
    what: { isWithoutCredentials: true },
    reason: 'no-credentials',
    begins: 'No valid credentials for cluster "target" since 2026-01-01T00:00:00Z (why)',
  },
  { what: { isSetBack: true }, reason: 'set-back', begins: 'Cluster "target" was restored to an earlier state' },
  {
    what: { isSetBack: true, isServerAhead: true },
    reason: 'server-ahead',
    begins: 'Cluster "target" was restored to an earlier state',
  },
] as const)('an outage is told with what it is because of: $reason', ({ what, reason, begins }) => {
  const outage = { cluster: 'target', sinceMs: Date.UTC(2026, 0, 1), why: 'why', ...what };

  expect(outageReasonOf(outage)).toBe(reason);
  expect(describeOutage(outage).startsWith(begins)).toBe(true);
});
