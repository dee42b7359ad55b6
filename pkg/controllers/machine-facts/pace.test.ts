import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { ReplacementPace, type PaceFacts } from './pace.ts';

const TIMEOUT = 600_000;

interface Change {
  readonly pool?: string;
  readonly isAlone?: boolean;
  readonly limit?: number;
  readonly zone?: string;
  readonly together?: number;
  readonly healthTimeoutMs?: number;
}

/** A machine of a pool, of which others are unhealthy too, in zone `z` in which it fell ill alone. */
function facts(uid: string, change: Change = {}): PaceFacts {
  const { pool = 'p', isAlone = false, limit = 1, zone = 'z', together = 1, healthTimeoutMs = TIMEOUT } = change;
  return { uid, pool: { key: pool, isAlone, limit }, zone: { key: zone, together }, healthTimeoutMs };
}

/** One that is alone in its pool, and fell ill with others of its zone. */
function inBurst(uid: string, change: Change = {}): PaceFacts {
  return facts(uid, { isAlone: true, together: 3, ...change });
}

/** How long `next` waits a minute after the replacements of `begun` began. */
function waitAfter(begun: readonly PaceFacts[], next: PaceFacts): number {
  const clock = new FakeClock();
  const pace = new ReplacementPace({ clock });
  for (const one of begun) pace.begin(one);
  clock.advance(60_000);
  return pace.waitMs(next);
}

/** How many begin within one health timeout at most, when each machine that is asked about begins as soon as it may. */
function mostWithinOneTimeout(asked: readonly { readonly afterMs: number; readonly one: PaceFacts }[]): number {
  const clock = new FakeClock();
  const pace = new ReplacementPace({ clock });
  const begun = new Map<string, number>();
  for (const { afterMs, one } of asked) {
    clock.advance(afterMs);
    if (begun.has(one.uid) || pace.waitMs(one) > 0) continue;
    pace.begin(one);
    begun.set(one.uid, clock.monotonicMs());
  }
  const times = [...begun.values()];
  return Math.max(0, ...times.map((first) => times.filter((at) => at >= first && at < first + TIMEOUT).length));
}

describe('the pace of replacement', () => {
  test.each<{ what: string; begun: PaceFacts[]; next: PaceFacts; waitMs: number }>([
    { what: 'the first goes at once', begun: [], next: facts('b'), waitMs: 0 },
    { what: 'the second of several waits a health timeout', begun: [facts('a')], next: facts('b'), waitMs: 540_000 },
    { what: 'one that has begun goes on', begun: [facts('a')], next: facts('a'), waitMs: 0 },
    { what: 'one that is alone does not wait', begun: [facts('a')], next: facts('b', { isAlone: true }), waitMs: 0 },
    {
      what: 'as many go as may be replaced at once',
      begun: [facts('a'), facts('b')],
      next: facts('c', { limit: 3 }),
      waitMs: 0,
    },
    {
      what: 'more do not',
      begun: [facts('a'), facts('b'), facts('c')],
      next: facts('d', { limit: 3 }),
      waitMs: 540_000,
    },
    {
      what: 'a limit that was lowered counts at once',
      begun: [facts('a', { limit: 3 })],
      next: facts('b', { limit: 1 }),
      waitMs: 540_000,
    },
    { what: 'another pool has its own', begun: [facts('a')], next: facts('b', { pool: 'q' }), waitMs: 0 },
    {
      what: 'a health timeout of 0 asks for no pace',
      begun: [facts('a')],
      next: facts('b', { healthTimeoutMs: 0 }),
      waitMs: 0,
    },
    { what: 'a limit of 0 is no matter of pace', begun: [facts('a')], next: facts('b', { limit: 0 }), waitMs: 0 },
    {
      what: 'nor in a zone of which others are replaced',
      begun: [inBurst('a')],
      next: inBurst('b', { pool: 'q', limit: 0 }),
      waitMs: 0,
    },
    {
      what: 'the shorter of two health timeouts counts, that of the machine',
      begun: [facts('a', { healthTimeoutMs: 10 * TIMEOUT })],
      next: facts('b'),
      waitMs: 540_000,
    },
    {
      what: 'the shorter of two health timeouts counts, that of the one before',
      begun: [facts('a')],
      next: facts('b', { healthTimeoutMs: 10 * TIMEOUT }),
      waitMs: 540_000,
    },
  ])('$what', ({ begun, next, waitMs }) => {
    expect(waitAfter(begun, next)).toBe(waitMs);
  });

  describe('in a zone of which several fell ill together', () => {
    const large = (uid: string): PaceFacts => inBurst(uid, { pool: 'large', isAlone: false, limit: 3 });
    const small = (uid: string): PaceFacts => inBurst(uid, { pool: uid, limit: 1 });

    test.each<{ what: string; begun: PaceFacts[]; next: PaceFacts; waitMs: number }>([
      { what: 'small pools share one turn', begun: [small('a')], next: small('b'), waitMs: 540_000 },
      {
        what: 'a machine that fell ill apart has its own',
        begun: [small('a')],
        next: facts('b', { pool: 'q' }),
        waitMs: 0,
      },
      {
        what: 'another zone has its own',
        begun: [small('a')],
        next: inBurst('b', { pool: 'q', zone: 'y' }),
        waitMs: 0,
      },
      {
        what: 'a small pool has its turn while a large one is replaced',
        begun: [large('a'), large('b')],
        next: small('c'),
        waitMs: 0,
      },
      {
        what: 'but not beyond the limit of the large one',
        begun: [large('a'), large('b'), large('c')],
        next: small('d'),
        waitMs: 540_000,
      },
      {
        what: 'a large pool is not held to the limit of a small one',
        begun: [small('a')],
        next: large('b'),
        waitMs: 0,
      },
      {
        what: 'but what small ones began counts for it',
        begun: [small('a'), large('b'), small('c')],
        next: large('d'),
        waitMs: 540_000,
      },
      {
        what: 'a pool that waits for itself waits although the zone would let it go',
        begun: [large('a'), inBurst('b', { pool: 'q', isAlone: false })],
        next: inBurst('c', { pool: 'q', isAlone: false }),
        waitMs: 540_000,
      },
    ])('$what', ({ begun, next, waitMs }) => {
      expect(waitAfter(begun, next)).toBe(waitMs);
    });

    test('never lets more begin within any health timeout than the greatest limit of its pools', () => {
      const limits = [1, 1, 2, 4];
      const looks = fc.array(fc.record({ afterMs: fc.nat({ max: TIMEOUT }), uid: fc.nat({ max: 40 }) }));
      fc.assert(
        fc.property(looks, (all) => {
          const asked = all.map(({ afterMs, uid }) => {
            const pool = uid % limits.length;
            return { afterMs, one: inBurst(String(uid), { pool: String(pool), limit: limits[pool] ?? 1 }) };
          });
          expect(mostWithinOneTimeout(asked)).toBeLessThanOrEqual(Math.max(...limits));
        }),
      );
    });
  });

  test('waits for the oldest that counts, not for the newest', () => {
    const clock = new FakeClock();
    const pace = new ReplacementPace({ clock });
    pace.begin(facts('a', { limit: 2 }));
    clock.advance(100_000);
    pace.begin(facts('b', { limit: 2 }));

    expect(pace.waitMs(facts('c', { limit: 2 }))).toBe(TIMEOUT - 100_000);
  });

  test('never lets more begin within any health timeout than may be replaced at once', () => {
    const looks = fc.array(fc.record({ afterMs: fc.nat({ max: TIMEOUT }), uid: fc.nat({ max: 40 }) }));
    fc.assert(
      fc.property(looks, fc.integer({ min: 1, max: 4 }), (all, limit) => {
        const asked = all.map(({ afterMs, uid }) => ({ afterMs, one: facts(String(uid), { limit }) }));
        expect(mostWithinOneTimeout(asked)).toBeLessThanOrEqual(limit);
      }),
    );
  });
});
