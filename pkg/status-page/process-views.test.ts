import { expect, test } from '@jest/globals';

import { toTimestamp } from '../base/clock/clock.ts';
import type { ClusterState } from '../kube/gate/outage-detector.ts';
import { checkViews, clusterViews, driverViews, leaderViews } from './process-views.ts';

const NOBODY = {
  isLeading: false,
  lease: undefined,
  holder: undefined,
  trouble: undefined,
  isSuspended: false,
  ended: undefined,
};
const SINCE_MS = Date.parse('2026-01-01T00:00:00Z');

test.each([
  { what: 'without leader election', elector: undefined, view: { state: 'always' } },
  {
    what: 'that leads',
    elector: {
      ...NOBODY,
      isLeading: true,
      holder: 'me',
      lease: { metadata: {}, spec: { acquireTime: '2026-01-01T00:00:00.000000Z' } },
    },
    view: { state: 'leading', holder: 'me', since: '2026-01-01T00:00:00.000000Z' },
  },
  { what: 'that stands by', elector: { ...NOBODY, holder: 'other' }, view: { state: 'standing-by', holder: 'other' } },
  {
    what: 'that cannot reach its Lease',
    elector: { ...NOBODY, trouble: { sinceMs: SINCE_MS, why: 'no route' } },
    view: { state: 'standing-by', trouble: 'no route (since 2026-01-01T00:00:00Z)' },
  },
  { what: 'that is suspended', elector: { ...NOBODY, isSuspended: true }, view: { state: 'suspended' } },
  {
    what: 'that has lost its Lease',
    elector: { ...NOBODY, isLeading: true, ended: 'lost' },
    view: { state: 'ended', trouble: 'lost' },
  },
])('a process $what is shown so', ({ elector, view }) => {
  expect(leaderViews([{ lease: 'l', elector: elector as never }])).toEqual([{ lease: 'l', ...view }]);
});

test('clusters are shown with the last sign of life before an outage, or before a probe that fails', () => {
  const state: ClusterState = {
    cluster: 'target',
    outage: undefined,
    silentSinceMs: undefined,
    answeredMs: 5,
    provenMs: 5,
    recoveredMs: undefined,
    lastError: undefined,
  };
  const outage = { cluster: 'target', sinceMs: SINCE_MS, why: 'ECONNREFUSED' };

  const views = clusterViews(
    [
      state,
      { ...state, provenMs: undefined },
      { ...state, silentSinceMs: 7_000 },
      { ...state, silentSinceMs: 7_000, lastError: 'timeout' },
      { ...state, silentSinceMs: 7_000, outage },
    ],
    (monotonicMs) => toTimestamp(SINCE_MS + monotonicMs),
  );

  expect(views).toEqual([
    { cluster: 'target', state: 'reachable' },
    { cluster: 'target', state: 'not-reached-yet' },
    { cluster: 'target', state: 'failing', since: '2026-01-01T00:00:07Z', text: 'no answer' },
    { cluster: 'target', state: 'failing', since: '2026-01-01T00:00:07Z', text: 'timeout' },
    {
      cluster: 'target',
      state: 'outage',
      since: '2026-01-01T00:00:00Z',
      text: 'API server of cluster "target" unreachable since 2026-01-01T00:00:00Z (ECONNREFUSED)',
    },
  ]);
});

test('drivers are shown as their metrics say', () => {
  const up = (provider: string, value: number) => ({ name: 'machinist_driver_up', labels: { provider }, value });
  const running = (provider: string, operation: string, value: number) => ({
    name: 'mcm_cloud_api_driver_requests_running',
    labels: { provider, operation },
    value,
  });

  const views = driverViews(
    ['a', 'b', 'c'],
    [up('a', 1), up('b', 0), running('a', 'x', 2), running('a', 'y', 1), running('b', 'x', 4)],
  );

  expect(views).toEqual([
    { provider: 'a', state: 'connected', running: 3 },
    { provider: 'b', state: 'not-connected', running: 4 },
    { provider: 'c', state: 'unknown', running: 0 },
  ]);
});

test('checks are shown as /readyz has them', () => {
  const checks = [
    { name: 'a', ok: true },
    { name: 'b', ok: true, isDegraded: true, detail: 'slow' },
    { name: 'c', ok: false, detail: 'gone' },
  ];

  expect(checkViews({ ok: false, checks })).toEqual([
    { name: 'a', state: 'ok' },
    { name: 'b', state: 'degraded', detail: 'slow' },
    { name: 'c', state: 'failed', detail: 'gone' },
  ]);
});
