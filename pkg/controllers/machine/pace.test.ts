import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { FakeClock } from '../../clock/fake-clock.ts';
import { ReplacementPace, type PaceFacts } from './pace.ts';

const TIMEOUT = 600_000;

function facts(uid: string, change: Partial<PaceFacts> = {}): PaceFacts {
  return {
    uid,
    pool: { key: 'p', unhealthy: 2 },
    zone: { name: 'a', together: 1 },
    limit: 1,
    healthTimeoutMs: TIMEOUT,
    ...change,
  };
}

/** How long `next` waits a minute after the replacements of `begun` began. */
function waitAfter(begun: readonly PaceFacts[], next: PaceFacts): number {
  const clock = new FakeClock();
  const pace = new ReplacementPace({ clock });
  for (const one of begun) pace.begin(one);
  clock.advance(60_000);
  return pace.waitMs(next);
}

describe('the pace of replacement', () => {
  test.each<{ what: string; begun: PaceFacts[]; next: PaceFacts; waitMs: number }>([
    { what: 'the first goes at once', begun: [], next: facts('b'), waitMs: 0 },
    { what: 'the second of several waits a health timeout', begun: [facts('a')], next: facts('b'), waitMs: 540_000 },
    { what: 'one that has begun goes on', begun: [facts('a')], next: facts('a'), waitMs: 0 },
    {
      what: 'one that is alone does not wait',
      begun: [facts('a')],
      next: facts('b', { pool: { key: 'p', unhealthy: 1 } }),
      waitMs: 0,
    },
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
      what: 'another pool has its own',
      begun: [facts('a')],
      next: facts('b', { pool: { key: 'q', unhealthy: 9 } }),
      waitMs: 0,
    },
    {
      what: 'pools of a zone that fell ill together share one',
      begun: [facts('a')],
      next: facts('b', { pool: { key: 'q', unhealthy: 1 }, zone: { name: 'a', together: 3 } }),
      waitMs: 540_000,
    },
    {
      what: 'another zone has its own',
      begun: [facts('a')],
      next: facts('b', { pool: { key: 'q', unhealthy: 1 }, zone: { name: 'b', together: 3 } }),
      waitMs: 0,
    },
    {
      what: 'a health timeout of 0 asks for no pace',
      begun: [facts('a')],
      next: facts('b', { healthTimeoutMs: 0 }),
      waitMs: 0,
    },
    { what: 'a limit of 0 is no matter of pace', begun: [facts('a')], next: facts('b', { limit: 0 }), waitMs: 0 },
  ])('$what', ({ begun, next, waitMs }) => {
    expect(waitAfter(begun, next)).toBe(waitMs);
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
    const steps = fc.array(fc.record({ afterMs: fc.nat({ max: TIMEOUT }), uid: fc.nat({ max: 40 }) }));
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 4 }), (looks, limit) => {
        const clock = new FakeClock();
        const pace = new ReplacementPace({ clock });
        const begun = new Map<string, number>();
        for (const { afterMs, uid } of looks) {
          clock.advance(afterMs);
          const one = facts(String(uid), { limit });
          if (begun.has(one.uid) || pace.waitMs(one) > 0) continue;
          pace.begin(one);
          begun.set(one.uid, clock.monotonicMs());
        }
        const times = [...begun.values()];
        for (const [i, atMs] of times.entries()) {
          const next = times[i + limit];
          expect(next === undefined || next - atMs >= TIMEOUT).toBe(true);
        }
      }),
    );
  });
});
