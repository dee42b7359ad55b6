import { describe, expect, test } from '@jest/globals';

import { cachesSynced, Checks, clustersReachable, leadership } from './checks.ts';

describe('checks', () => {
  test('show the state of caches, Leases and clusters', () => {
    const checks = new Checks();
    checks.add(cachesSynced(() => [{ kind: 'machines', hasSynced: true }]));
    checks.add(leadership('machine-controller', { isLeading: false, holder: 'other' }));
    const fine = { frozen: false, outage: undefined, firstFailureMs: undefined, lastError: undefined };
    const unproven = { provenMs: undefined, unfrozenMs: undefined };
    checks.add(
      clustersReachable(
        () => [
          { cluster: 'control', ...fine, ...unproven },
          {
            cluster: 'target',
            frozen: true,
            outage: { cluster: 'target', sinceMs: Date.UTC(2026, 0, 1), why: 'connection refused' },
            firstFailureMs: 1_000,
            lastError: 'no route to host',
            ...unproven,
          },
          { cluster: 'other', ...fine, firstFailureMs: 41_000, lastError: 'connection refused', ...unproven },
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
          detail:
            'control: reachable; target: frozen, API server of cluster "target" unreachable since 2026-01-01T00:00:00Z ' +
            '(connection refused), for 45 s now, last answer to a probe: no route to host; other: failing for 5 s (connection refused)',
        },
      ],
    });
  });

  test('name the caches that are missing', () => {
    const check = cachesSynced(() => [
      { kind: 'machines', hasSynced: true },
      { kind: 'nodes', hasSynced: false },
    ]);

    expect(check.check()).toEqual({ ok: false, detail: 'not synced: nodes' });
  });

  test('have names of their own', () => {
    const checks = new Checks();
    const fine = { name: 'fine', check: () => ({ ok: true }) };
    checks.add(fine);

    expect(() => checks.add(fine)).toThrow('fine exists already');
  });
});
