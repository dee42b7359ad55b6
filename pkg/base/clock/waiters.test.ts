import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { Waiters } from './waiters.ts';

const never = new AbortController().signal;

describe('Waiters.until', () => {
  test('resolves at once when it already holds', async () => {
    await expect(new Waiters(new FakeClock()).until(() => true, never)).resolves.toBe(true);
  });

  test('looks again at every change', async () => {
    const changes = new Waiters(new FakeClock());
    let count = 0;
    const waiting = changes.until(() => count === 2, never);

    for (count of [1, 2]) changes.notify();

    await expect(waiting).resolves.toBe(true);
  });

  test('gives up after its time, and leaves no timer', async () => {
    const clock = new FakeClock();
    const waiting = new Waiters(clock).until(() => false, never, 100);

    clock.advance(100);

    await expect(waiting).resolves.toBe(false);
  });

  test('rejects with the reason of the signal, before and during the wait', async () => {
    const changes = new Waiters(new FakeClock());
    const abort = new AbortController();
    const waiting = changes.until(() => false, abort.signal);

    abort.abort(new Error('stopping'));

    await expect(waiting).rejects.toThrow('stopping');
    await expect(changes.until(() => true, abort.signal)).rejects.toThrow('stopping');
  });
});
