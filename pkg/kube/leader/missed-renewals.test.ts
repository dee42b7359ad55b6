import { expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import type { Lease } from '../../apis/wire.ts';
import { DeadlineError } from '../../base/clock/deadline.ts';
import { ApiError, REFUSAL_PATIENCE_MS } from '../client/errors.ts';
import { MissedRenewals } from './missed-renewals.ts';

const AWAY = new ApiError(0, 'Unreachable', 'connection refused');
const REFUSED = new ApiError(403, 'Forbidden', 'no leases for you');

function renewedAt(renewTime: string): Lease {
  const metadata = { name: 'l', namespace: 'n', uid: 'u', resourceVersion: '1', creationTimestamp: '' };
  return { metadata, spec: { holderIdentity: 'me', renewTime } };
}

test.each([
  { what: 'was not reached', err: AWAY, isAway: true },
  { what: 'did not answer in time', err: new DeadlineError('a request', 1_000), isAway: true },
  { what: 'had too much to do', err: new ApiError(429, 'TooManyRequests', 'x'), isAway: true },
  { what: 'refused', err: REFUSED, isAway: false },
])('a server that $what was away: $isAway, until a renewal is answered', ({ err, isAway }) => {
  const missed = new MissedRenewals(new FakeClock());

  missed.failed(err, 0);
  missed.failed(REFUSED, 0);

  expect(missed.wasAway).toBe(isAway);
  missed.end();
  expect([missed.wasAway, missed.error, missed.why]).toEqual([false, undefined, '']);
});

test('a server means its refusal when it has given nothing else for long', () => {
  const clock = new FakeClock();
  const missed = new MissedRenewals(clock);

  missed.failed(REFUSED, clock.monotonicMs());
  clock.advance(REFUSAL_PATIENCE_MS - 1);
  missed.failed(REFUSED, clock.monotonicMs());
  expect(missed.isRefused).toBe(false);
  clock.advance(1);
  expect(missed.isRefused).toBe(true);
  expect(missed.why).toBe(': no leases for you');

  missed.notRefused();
  expect(missed.isRefused).toBe(false);
  missed.failed(REFUSED, clock.monotonicMs());
  missed.failed(AWAY, clock.monotonicMs());
  clock.advance(REFUSAL_PATIENCE_MS);
  expect(missed.isRefused).toBe(false);
});

test('a Lease is ours as it was answered last, or as it was sent since then without an answer', () => {
  const missed = new MissedRenewals(new FakeClock());
  const answered = renewedAt('1');
  missed.sent(renewedAt('2'), AWAY);
  missed.sent(renewedAt('3'), REFUSED);

  const isOurs = (renewTime: string): boolean => missed.includes(renewedAt(renewTime), answered);
  expect(['1', '2', '3', '4'].map(isOurs)).toEqual([true, true, false, false]);
  missed.end();
  expect(isOurs('2')).toBe(false);
});

test('a server that refuses is not away because the last renewal before the deadline had a millisecond', () => {
  const clock = new FakeClock();
  const missed = new MissedRenewals(clock);
  missed.failed(REFUSED, clock.monotonicMs());
  clock.advance(REFUSAL_PATIENCE_MS);

  missed.failed(new DeadlineError('a request for the Lease', 1), clock.monotonicMs(), { isCutShort: true });

  expect([missed.wasAway, missed.isRefused, missed.why]).toEqual([false, true, ': no leases for you']);
});

test('one that had less time than others says nothing of a cause where one is known', () => {
  const missed = new MissedRenewals(new FakeClock());
  const cutShort = new DeadlineError('a request for the Lease', 1);
  missed.failed(cutShort, 0, { isCutShort: true });
  const alone = missed.why;
  missed.failed(AWAY, 0);

  missed.failed(cutShort, 0, { isCutShort: true });

  expect([alone, missed.why]).toEqual([': a request for the Lease took longer than 1 ms', ': connection refused']);
  missed.failed(new DeadlineError('a request for the Lease', 5_000), 0);
  expect(missed.why).toBe(': a request for the Lease took longer than 5000 ms');
});
