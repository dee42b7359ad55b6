import { describe, expect, test } from '@jest/globals';

import { DeadlineError, untilAborted, withDeadline } from './deadline.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';

const hangs = (): Promise<never> => new Promise(() => undefined);

describe('withDeadline', () => {
  test('answers with the result when it comes in time, and leaves no timer', async () => {
    const clock = new FakeClock();
    let seen: AbortSignal | undefined;

    const got = await withDeadline(clock, 100, 'work', (signal) => {
      seen = signal;
      return Promise.resolve(7);
    });
    clock.advance(1_000);

    expect(got).toBe(7);
    expect(seen?.aborted).toBe(false);
  });

  test('rejects at the deadline even when the work does not heed its signal', async () => {
    const clock = new FakeClock();
    let seen: AbortSignal | undefined;
    const waiting = withDeadline(clock, 100, 'probing', (signal) => {
      seen = signal;
      return hangs();
    });

    clock.advance(100);

    await expect(waiting).rejects.toThrow(new DeadlineError('probing', 100));
    expect(seen?.aborted).toBe(true);
  });

  test('tells whole milliseconds', async () => {
    const clock = new FakeClock();
    const waiting = withDeadline(clock, 10_000 / 3, 'probing', hangs);

    clock.advance(4_000);

    await expect(waiting).rejects.toThrow(/^probing took longer than 3333 ms$/);
  });

  test('rejects with the reason of the parent when that is aborted first', async () => {
    const parent = new AbortController();
    const waiting = withDeadline(new FakeClock(), 100, 'probing', hangs, parent.signal);

    parent.abort(new Error('stopping'));

    await expect(waiting).rejects.toThrow('stopping');
  });
});

describe('untilAborted', () => {
  test('does not wait at all when the signal is already aborted', async () => {
    await expect(untilAborted(hangs(), AbortSignal.abort(new Error('stopping')))).rejects.toThrow('stopping');
  });

  test('passes on a failure', async () => {
    const never = new AbortController().signal;

    await expect(untilAborted(Promise.reject(new Error('broken')), never)).rejects.toThrow('broken');
  });
});
