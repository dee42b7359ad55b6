import { expect, test } from '@jest/globals';

import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { Patience } from './patience.ts';

test('who comes again and again waits longer each time, up to a limit, and no longer than the others', () => {
  const clock = new FakeClock();
  const patience = new Patience(clock);
  const waits = Array.from({ length: 9 }, () => {
    const waitMs = patience.waitMs('a');
    clock.advance(waitMs);
    return waitMs;
  });

  expect(waits).toEqual([20, 40, 80, 160, 320, 640, 1_280, 2_000, 2_000]);
  expect(patience.waitMs('b')).toBe(20);
  clock.advance(12_000);
  expect(patience.waitMs('a')).toBe(20);
});

test('who was let in begins again', () => {
  const patience = new Patience(new FakeClock());
  patience.waitMs('a');
  patience.forget('a');

  expect(patience.waitMs('a')).toBe(20);
});
