import { expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { StatusPace } from './status-pace.ts';

test('a status is written at once, then after a pause, each object for itself, and at once again when it was forgotten', () => {
  const clock = new FakeClock();
  const pace = new StatusPace(clock);

  expect(pace.waitMs('a')).toBe(0);
  pace.written('a');
  expect([pace.waitMs('a'), pace.waitMs('b')]).toEqual([250, 0]);
  clock.advance(100);
  expect(pace.waitMs('a')).toBe(150);
  clock.advance(150);
  expect(pace.waitMs('a')).toBe(0);
  pace.written('a');
  pace.forget('a');
  expect(pace.waitMs('a')).toBe(0);
});
