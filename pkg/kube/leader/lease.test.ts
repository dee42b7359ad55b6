import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import { SECOND } from '../../../test/durations.ts';
import type { Lease } from '../../apis/wire.ts';
import {
  decideLease,
  newLease,
  nothingSeen,
  observe,
  outbid,
  releasedLease,
  renewedLease,
  takenLease,
  transitionsOf,
} from './lease.ts';
import type { LeaseTiming, Observation } from './lease.ts';

const timing: LeaseTiming = { leaseDurationMs: 15 * SECOND, renewDeadlineMs: 10 * SECOND, retryPeriodMs: 2 * SECOND };
const WALL = Date.parse('2026-01-01T00:00:00.123Z');

function heldBy(holder: string, renewTime = '2026-01-01T00:00:00.000000Z', transitions = 4): Lease {
  return {
    metadata: { name: 'lease', namespace: 'ns', uid: 'u', resourceVersion: '1', creationTimestamp: '' },
    spec: {
      holderIdentity: holder,
      leaseDurationSeconds: 15,
      acquireTime: '2026-01-01T00:00:00.000000Z',
      renewTime,
      leaseTransitions: transitions,
    },
  };
}

const seen = (lease: Lease | undefined, nowMs = 0, before: Observation = nothingSeen) => observe(before, lease, nowMs);

describe('deciding', () => {
  test('creates a Lease that nobody ever held, with the first fencing token', () => {
    expect(decideLease(seen(undefined), 'me', 0)).toEqual({ kind: 'create', transitions: 1 });
  });

  test('waits for the lease duration from when it first saw a renewal', () => {
    const observation = seen(heldBy('other'), 1_000);

    expect(decideLease(observation, 'me', 1_000)).toEqual({ kind: 'wait', forMs: 15 * SECOND });
    expect(decideLease(observation, 'me', 15_999)).toEqual({ kind: 'wait', forMs: 1 });
    expect(decideLease(observation, 'me', 16_000)).toMatchObject({ kind: 'take', transitions: 5 });
  });

  test.each([
    { what: 'long past', renewTime: '2001-01-01T00:00:00.000000Z' },
    { what: 'in the far future', renewTime: '2100-01-01T00:00:00.000000Z' },
  ])('does not believe a renew time $what: the clock of the holder may be wrong', ({ renewTime }) => {
    expect(decideLease(seen(heldBy('other', renewTime)), 'me', 0)).toEqual({ kind: 'wait', forMs: 15 * SECOND });
  });

  test('takes a released Lease at once', () => {
    const observation = seen(releasedLease(heldBy('other'), WALL), 5, seen(heldBy('other')));

    expect(decideLease(observation, 'me', 5)).toMatchObject({ kind: 'take', transitions: 5 });
  });

  test('goes on under the same token when it holds the Lease already: the answer of an attempt was lost', () => {
    expect(decideLease(seen(heldBy('me')), 'me', 0)).toMatchObject({ kind: 'take', transitions: 4 });
  });

  test('after a deletion still waits for the holder that it had seen, and lets no token fall', () => {
    const observation = seen(undefined, 9_000, seen(heldBy('other'), 0));

    expect(decideLease(observation, 'me', 9_000)).toEqual({ kind: 'wait', forMs: 6_000 });
    expect(decideLease(observation, 'me', 15_000)).toEqual({ kind: 'create', transitions: 5 });
  });
});

describe('observing', () => {
  test.each([
    { what: 'the same renewal read again', next: heldBy('other'), wantMs: 15_000 },
    {
      what: 'somebody else labelled the Lease',
      next: { ...heldBy('other'), metadata: { ...heldBy('other').metadata, resourceVersion: '2', labels: { a: 'b' } } },
      wantMs: 15_000,
    },
    { what: 'a new renewal', next: heldBy('other', '2026-01-01T00:00:02.000000Z'), wantMs: 22_000 },
    { what: 'a new holder', next: heldBy('third', '2026-01-01T00:00:00.000000Z', 5), wantMs: 22_000 },
  ])('$what: held until $wantMs', ({ next, wantMs }) => {
    expect(seen(next, 7_000, seen(heldBy('other'), 0)).heldUntilMs).toBe(wantMs);
  });
});

describe('writing', () => {
  test('a new Lease has whole seconds of duration and micro-times', () => {
    expect(newLease({ name: 'lease' }, 'me', 1, timing, WALL)).toEqual({
      metadata: { name: 'lease' },
      spec: {
        holderIdentity: 'me',
        leaseDurationSeconds: 15,
        acquireTime: '2026-01-01T00:00:00.123000Z',
        renewTime: '2026-01-01T00:00:00.123000Z',
        leaseTransitions: 1,
      },
    });
  });

  test('a duration with a fraction of a second is rounded up, because the API takes whole ones', () => {
    const { spec } = newLease({ name: 'lease' }, 'me', 1, { ...timing, leaseDurationMs: 14_500 }, WALL);
    expect(spec?.leaseDurationSeconds).toBe(15);
  });

  test('a taken Lease changes hands and counts the transition; the resourceVersion guards it', () => {
    const taken = takenLease(heldBy('other'), 'me', 5, timing, WALL);

    expect(taken.metadata.resourceVersion).toBe('1');
    expect(taken.spec).toMatchObject({ holderIdentity: 'me', leaseTransitions: 5 });
    expect(taken.spec?.acquireTime).toBe('2026-01-01T00:00:00.123000Z');
  });

  test('a renewal moves only the renew time', () => {
    const lease = heldBy('me');

    expect(renewedLease(lease, WALL)).toEqual({
      ...lease,
      spec: { ...lease.spec, renewTime: '2026-01-01T00:00:00.123000Z' },
    });
  });

  test.each([
    { heldAt: 4, least: 0, want: 4 },
    { heldAt: 4, least: 4, want: 4 },
    { heldAt: 4, least: 6, want: 6 },
    { heldAt: 6, least: 4, want: 6 },
  ])('a renewal of $heldAt with at least $least transitions has $want', ({ heldAt, least, want }) => {
    const renewed = renewedLease(heldBy('me', '2026-01-01T00:00:00.000000Z', heldAt), WALL, least);

    expect(renewed.spec).toMatchObject({ holderIdentity: 'me', leaseTransitions: want });
  });

  test('a release leaves nobody, one second, and the token', () => {
    expect(releasedLease(heldBy('me'), WALL).spec).toMatchObject({
      holderIdentity: '',
      leaseDurationSeconds: 1,
      leaseTransitions: 4,
    });
  });
});

test('two candidates that see every version never both think that they lead, whatever their clocks and pauses', () => {
  // One server; each candidate acts at random moments, renews only within its deadline, and counts a Lease as its own only
  // until the renewal that it sent + renew deadline. Writes are compare-and-swap.
  // A leader may hear of any token that drivers have seen, and outbids it when it renews: tokens of two leaders never mix.
  const heard = fc.option(fc.bigInt({ min: 0n, max: 40n }), { freq: 4 });
  const step = fc.record({ who: fc.integer({ min: 0, max: 1 }), ms: fc.integer({ min: 0, max: 9_000 }), heard });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
      let server: Lease | undefined;
      let nowMs = 0;
      let highest = 0;
      const names = ['a', 'b'];
      const observations: Observation[] = [nothingSeen, nothingSeen];
      const openUntil = [-1, -1];
      let lastHolder: string | undefined;
      for (const { who, ms, heard: token } of steps) {
        nowMs += ms;
        const me = names[who] ?? '';
        let least = 0;
        const skewed = WALL + nowMs + who * 3_600_000;
        observations[who] = observe(observations[who] ?? nothingSeen, server, nowMs);
        const isMine = server !== undefined && server.spec?.holderIdentity === me;
        const decision = decideLease(observations[who] ?? nothingSeen, me, nowMs);
        if (isMine && server !== undefined && nowMs < (openUntil[who] ?? -1)) {
          if (token !== null) observations[who] = outbid(observations[who] ?? nothingSeen, token);
          server = renewedLease(server, skewed, observations[who]?.transitions);
          if (token !== null) least = Number(token) + 1;
        } else if (decision.kind === 'create') {
          server = { ...heldBy(me), ...newLease({ name: 'lease' }, me, decision.transitions, timing, skewed) } as Lease;
        } else if (decision.kind === 'take')
          server = takenLease(decision.lease, me, decision.transitions, timing, skewed);
        else continue;
        openUntil[who] = nowMs + timing.renewDeadlineMs;
        observations[who] = observe(observations[who] ?? nothingSeen, server, nowMs);

        expect(nowMs < (openUntil[1 - who] ?? -1)).toBe(false);
        least = Math.max(least, me === lastHolder ? highest : highest + 1);
        expect(transitionsOf(server)).toBeGreaterThanOrEqual(least);
        highest = transitionsOf(server);
        lastHolder = me;
      }
    }),
  );
});
