import { expect, test } from '@jest/globals';

import { creationRoom } from './creation-room.ts';

test.each([
  { title: 'fills up', living: 3, existing: 3, isRollout: false, room: 3 },
  { title: 'does not wait for machines that go', living: 3, existing: 9, isRollout: false, room: 3 },
  { title: 'is full', living: 6, existing: 6, isRollout: false, room: 0 },
  { title: 'has too many', living: 8, existing: 8, isRollout: false, room: 0 },
  { title: 'waits in a rollout for machines that go', living: 5, existing: 6, isRollout: true, room: 0 },
  { title: 'goes on in a rollout when they are gone', living: 5, existing: 5, isRollout: true, room: 1 },
])('a deployment that may have six $title', ({ living, existing, isRollout, room }) => {
  expect(creationRoom({ allowed: 6, living, existing, isRollout })).toBe(room);
});
