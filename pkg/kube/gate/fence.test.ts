import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { instantOf } from '../../base/clock/host-clock.ts';
import { LeaseFence, OpenFence } from './fence.ts';

const RENEW_DEADLINE_MS = 10_000;

describe('the fence of a Lease', () => {
  test('is closed before the first renewal', () => {
    const fence = new LeaseFence({ clock: new FakeClock(), renewDeadlineMs: RENEW_DEADLINE_MS });

    expect(fence.remainingMs).toBe(0);
    expect(fence.openSinceMs).toBeUndefined();
  });

  test('counts from when the renewal was sent, not from when it was answered', () => {
    const clock = new FakeClock();
    const fence = new LeaseFence({ clock, renewDeadlineMs: RENEW_DEADLINE_MS });
    const sentAt = instantOf(clock);
    clock.advance(4_000);

    fence.renewed(sentAt, 7);

    expect(fence.remainingMs).toBe(6_000);
    expect(fence.token).toBe(7n);
  });

  test.each([
    { what: 'the process was paused', monotonic: 10_000, wall: 0 },
    { what: 'the host was suspended and its monotonic clock stood still', monotonic: 1, wall: 10_000 },
    { what: 'the wall clock was set back meanwhile', monotonic: 10_000, wall: -3_600_000 },
  ])('is closed at the deadline when $what', ({ monotonic, wall }) => {
    const clock = new FakeClock();
    const fence = new LeaseFence({ clock, renewDeadlineMs: RENEW_DEADLINE_MS });
    fence.renewed(instantOf(clock), 1);

    clock.advance(monotonic);
    clock.jumpHostWall(wall);

    expect(fence.remainingMs).toBe(0);
  });

  test('a re-anchored wall time neither opens nor closes it', () => {
    const clock = new FakeClock();
    const fence = new LeaseFence({ clock, renewDeadlineMs: RENEW_DEADLINE_MS });
    fence.renewed(instantOf(clock), 1);

    clock.reanchor(clock.now() + 3_600_000);

    expect(fence.remainingMs).toBe(RENEW_DEADLINE_MS);
  });

  test('is the same for two threads that share its memory, whoever looks', () => {
    const clock = new FakeClock();
    const renewing = new LeaseFence({ clock, renewDeadlineMs: RENEW_DEADLINE_MS });
    const looking = new LeaseFence({ clock, renewDeadlineMs: RENEW_DEADLINE_MS, memory: renewing.memory });
    const seen: unknown[] = [];
    const look = (): void => void seen.push([looking.remainingMs, looking.token, looking.openSinceMs !== undefined]);

    look();
    for (const token of [3, 3, 4]) {
      renewing.renewed(instantOf(clock), token);
      clock.advance(1_000);
      look();
    }
    renewing.close();
    look();

    expect(seen).toEqual([
      [0, 0n, false],
      [9_000, 3n, true],
      [9_000, 3n, true],
      [9_000, 4n, true],
      [0, 4n, false],
    ]);
  });

  test('has been open since the first renewal after it was closed', () => {
    const clock = new FakeClock();
    const fence = new LeaseFence({ clock, renewDeadlineMs: RENEW_DEADLINE_MS });
    clock.advance(1_000);
    fence.renewed(instantOf(clock), 1);
    clock.advance(5_000);
    fence.renewed(instantOf(clock), 1);
    const uninterrupted = fence.openSinceMs;
    clock.advance(20_000);
    fence.renewed(instantOf(clock), 3);

    expect(uninterrupted).toBe(1_000);
    expect(fence.openSinceMs).toBe(26_000);
  });

  test('stays closed once it was closed, until renewed', () => {
    const clock = new FakeClock();
    const fence = new LeaseFence({ clock, renewDeadlineMs: RENEW_DEADLINE_MS });
    fence.renewed(instantOf(clock), 1);

    fence.close();

    expect(fence.remainingMs).toBe(0);
  });

  test('is never open later than the deadline after the last renewal was sent, by either clock', () => {
    const step = fc.record({
      monotonicMs: fc.integer({ min: 0, max: 6_000 }),
      wallMs: fc.integer({ min: -20_000, max: 20_000 }),
      renew: fc.boolean(),
      answerMs: fc.integer({ min: 0, max: 12_000 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20, size: 'max' }), (steps) => {
        const clock = new FakeClock();
        const fence = new LeaseFence({ clock, renewDeadlineMs: RENEW_DEADLINE_MS });
        let sent = { monotonicMs: -Infinity, hostWallMs: -Infinity };
        for (const { monotonicMs, wallMs, renew, answerMs } of steps) {
          clock.advance(monotonicMs);
          clock.jumpHostWall(wallMs);
          if (renew) {
            sent = instantOf(clock);
            clock.advance(answerMs);
            fence.renewed(sent, 1);
          }
          const late =
            clock.monotonicMs() - sent.monotonicMs >= RENEW_DEADLINE_MS ||
            clock.hostWallMs() - sent.hostWallMs >= RENEW_DEADLINE_MS;
          expect(fence.remainingMs > 0).toBe(!late);
        }
      }),
    );
  });
});

describe('without leader election', () => {
  test('the fence is open forever and names no transition', () => {
    const clock = new FakeClock();
    const fence = new OpenFence({ clock });

    clock.advance(1e9);

    expect(fence.remainingMs).toBe(Infinity);
    expect(fence.token).toBe(0n);
    expect(fence.openSinceMs).toBe(0);
  });
});
