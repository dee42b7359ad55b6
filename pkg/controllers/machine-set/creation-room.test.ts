import { expect, test } from '@jest/globals';

import * as fc from 'fast-check';

import { creationRoom } from './creation-room.ts';

test.each([
  { title: 'fills up', living: 3, existing: 3, isRollout: false, room: 3 },
  { title: 'does not wait for machines that go', living: 3, existing: 9, isRollout: false, room: 3 },
  { title: 'is full', living: 6, existing: 6, isRollout: false, room: 0 },
  { title: 'has too many', living: 8, existing: 8, isRollout: false, room: 0 },
  { title: 'waits in a rollout for machines that go', living: 5, existing: 6, isRollout: true, room: 0 },
  { title: 'goes on in a rollout when they are gone', living: 5, existing: 5, isRollout: true, room: 1 },
  {
    title: 'replaces in a rollout without waiting for machines that go',
    living: 4,
    existing: 9,
    replaced: 1,
    isRollout: true,
    room: 1,
  },
  { title: 'replaces none beyond its number', living: 6, existing: 9, replaced: 2, isRollout: true, room: 0 },
  { title: 'counts what another set is creating', living: 3, existing: 3, underway: 2, isRollout: true, room: 1 },
  {
    title: 'replaces beside another set that creates',
    living: 4,
    existing: 9,
    replaced: 2,
    underway: 1,
    isRollout: true,
    room: 1,
  },
])('a deployment that may have six $title', ({ living, existing, underway = 0, replaced = 0, isRollout, room }) => {
  expect(creationRoom({ allowed: 6, living, existing, underway, replaced, isRollout })).toBe(room);
});

test('sets that create at once, each as far as it may, never make more live than may', () => {
  const set = fc.record({ living: fc.nat(20), going: fc.nat(20), size: fc.nat(40) });
  fc.assert(
    fc.property(fc.nat(60), fc.array(set, { minLength: 1, maxLength: 4 }), (allowed, sets) => {
      const living = sets.reduce((sum, one) => sum + one.living, 0);
      const existing = sets.reduce((sum, one) => sum + one.living + one.going, 0);
      let underway = 0;
      for (const one of sets) {
        const replaced = Math.max(0, Math.min(one.size, one.living + one.going) - one.living);
        const room = creationRoom({ allowed, living, existing, underway, replaced, isRollout: sets.length > 1 });
        const count = Math.min(room, Math.max(0, one.size - one.living));
        expect(living + underway + count).toBeLessThanOrEqual(Math.max(allowed, living + underway));
        expect(existing + underway + count).toBeLessThanOrEqual(
          sets.length > 1 ? Math.max(allowed, existing + underway + replaced) : Infinity,
        );
        underway += count;
      }
    }),
  );
});
