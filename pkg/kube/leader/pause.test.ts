import { expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { Pause } from './pause.ts';

const never = new AbortController().signal;

test('a pause ends with its time, or when it is woken', async () => {
  const clock = new FakeClock();
  const pause = new Pause(clock);
  const whole = pause.wait(1_000, never);
  clock.advance(1_000);
  await whole;

  const short = pause.wait(1_000, never);
  pause.wake();
  await short;
});

test('who is woken between two pauses does not wait in the next, but in the one after it', async () => {
  const clock = new FakeClock();
  const pause = new Pause(clock);
  const first = pause.wait(1_000, never);
  clock.advance(1_000);
  await first;
  pause.wake();
  await pause.wait(1_000, never);

  let isOver = false;
  const next = pause.wait(1_000, never).then(() => (isOver = true));
  await clock.advanceAsync(999);
  expect(isOver).toBe(false);
  clock.advance(1);
  await next;
});

test('a pause that is given up rejects with the reason, also when it was woken before', async () => {
  const ending = new AbortController();
  const pause = new Pause(new FakeClock());
  const given = pause.wait(1_000, ending.signal);
  ending.abort(new Error('the process ends'));

  await expect(given).rejects.toThrow('the process ends');
  pause.wake();
  await expect(pause.wait(1_000, ending.signal)).rejects.toThrow('the process ends');
});
