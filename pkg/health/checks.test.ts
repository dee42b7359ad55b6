import { describe, expect, test } from '@jest/globals';

import { cachesSynced, Checks, clustersReachable, credentialsValid, leadership } from './checks.ts';

const candidate = { isLeading: false, isSuspended: false, holder: undefined, ended: undefined, trouble: undefined };

describe('checks', () => {
  test('show the state of caches, Leases and clusters', () => {
    const checks = new Checks();
    checks.add(cachesSynced(() => [{ kind: 'machines', hasSynced: true }]));
    checks.add(leadership('machine-controller', { ...candidate, holder: 'other' }));
    const fine = { outage: undefined, silentSinceMs: undefined, lastError: undefined };
    const unproven = { answeredMs: undefined, provenMs: undefined, recoveredMs: undefined };
    checks.add(
      clustersReachable(
        () => [
          { cluster: 'control', ...fine, ...unproven, provenMs: 45_000 },
          { cluster: 'new', ...fine, ...unproven },
          {
            cluster: 'target',
            outage: { cluster: 'target', sinceMs: Date.UTC(2026, 0, 1), why: 'connection refused' },
            silentSinceMs: 1_000,
            lastError: 'no route to host',
            ...unproven,
          },
          { cluster: 'other', ...fine, silentSinceMs: 41_000, lastError: 'connection refused', ...unproven },
        ],
        () => 46_000,
      ),
    );
    expect(checks.run()).toEqual({
      ok: true,
      checks: [
        { name: 'caches', ok: true },
        { name: 'lease machine-controller', ok: true, detail: 'standing by, held by other' },
        {
          name: 'clusters',
          ok: true,
          isDegraded: true,
          detail:
            'control: reachable; new: not reached yet; target: outage, API server of cluster "target" unreachable since 2026-01-01T00:00:00Z ' +
            '(connection refused), for 45 s, last probe: no route to host; other: failing for 5 s (connection refused)',
        },
      ],
    });
  });

  test.each([
    { lastError: undefined, want: '' },
    { lastError: 'nodes is forbidden', want: ', last attempt failed: nodes is forbidden' },
  ])('say what keeps a cluster that was set back from being read again: $lastError', ({ lastError, want }) => {
    const outage = {
      cluster: 'target',
      sinceMs: 0,
      why: 'nodes are at 5, and were at 9 before',
      isSetBack: true as const,
    };
    const state = { cluster: 'target', outage, silentSinceMs: 1_000, lastError };
    const check = clustersReachable(
      () => [{ ...state, answeredMs: undefined, provenMs: undefined, recoveredMs: undefined }],
      () => 46_000,
    );

    expect(check.check().detail).toMatch(new RegExp(` reading the cluster for 45 s${want}$`));
  });

  test.each([
    { what: 'a leader', shown: { isLeading: true, holder: 'me' }, want: { ok: true, detail: 'leading' } },
    { what: 'who stands by for nobody', shown: {}, want: { ok: true, detail: 'standing by' } },
    {
      what: 'who cannot read the Lease',
      shown: { holder: 'other', trouble: { sinceMs: Date.UTC(2026, 0, 1), why: 'etcdserver: request timed out' } },
      want: {
        ok: true,
        isDegraded: true,
        detail:
          'standing by, held by other; could not read or acquire the Lease since 2026-01-01T00:00:00Z (etcdserver: request timed out)',
      },
    },
    {
      what: 'a leader that waits for the API server to come back',
      shown: { isSuspended: true, holder: 'me', trouble: { sinceMs: Date.UTC(2026, 0, 1), why: 'connection refused' } },
      want: {
        ok: true,
        isDegraded: true,
        detail:
          'leadership suspended; could not read or acquire the Lease since 2026-01-01T00:00:00Z (connection refused)',
      },
    },
    {
      what: 'who has lost the Lease and ends',
      shown: { holder: 'me', ended: 'lost leadership: the Lease is held by another process' },
      want: { ok: false, detail: 'stopping: lost leadership: the Lease is held by another process' },
    },
  ])('tell of $what', ({ shown, want }) => {
    expect(leadership('machine-controller', { ...candidate, ...shown }).check()).toEqual(want);
  });

  const LOADED = { loadedMs: 0, missingSinceMs: undefined, trouble: undefined };
  test.each([
    { what: 'that never change', state: undefined, want: { ok: true, detail: 'target: valid' } },
    { what: 'that were loaded', state: LOADED, want: { ok: true, detail: 'target: valid' } },
    {
      what: 'that cannot be loaded again',
      state: { ...LOADED, trouble: 'ENOENT' },
      want: { ok: true, isDegraded: true, detail: 'target: loaded 1 min 30 s ago, cannot be reloaded (ENOENT)' },
    },
    {
      what: 'that have been missing for the renew deadline',
      state: { ...LOADED, missingSinceMs: 80_000, trouble: 'ENOENT' },
      want: { ok: true, isDegraded: true, detail: 'target: not loaded for 10 s (ENOENT)' },
    },
    {
      what: 'that have been missing for longer',
      state: { loadedMs: undefined, missingSinceMs: 79_999, trouble: 'ENOENT' },
      want: { ok: false, detail: 'target: not loaded for 10 s (ENOENT)' },
    },
  ])('tell of credentials $what', ({ state, want }) => {
    const clusters = [{ cluster: 'target', state }];

    expect(
      credentialsValid(
        () => clusters,
        () => 90_000,
        10_000,
      ).check(),
    ).toEqual(want);
  });

  test('name the caches that are missing', () => {
    const check = cachesSynced(() => [
      { kind: 'machines', hasSynced: true },
      { kind: 'nodes', hasSynced: false },
    ]);

    expect(check.check()).toEqual({ ok: false, detail: 'not synced: nodes' });
  });

  test('do without caches that are optional, and name them', () => {
    const sets = { kind: 'MachineSet', hasSynced: false, isOptional: true };

    expect(cachesSynced(() => [sets]).check()).toEqual({
      ok: true,
      isDegraded: true,
      detail: 'without MachineSet (not permitted to read)',
    });
    expect(cachesSynced(() => [sets, { kind: 'Node', hasSynced: false }]).check()).toEqual({
      ok: false,
      detail: 'not synced: Node',
    });
  });

  test('have names of their own', () => {
    const checks = new Checks();
    const fine = { name: 'fine', check: () => ({ ok: true }) };
    checks.add(fine);

    expect(() => checks.add(fine)).toThrow('fine already exists');
  });
});
