import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../clock/fake-clock.ts';
import { ApiError } from '../kube/errors.ts';
import { silentLogger } from '../log/logger.ts';
import { persistently } from './persistently.ts';

const unreachable = (): ApiError => new ApiError(0, 'Unreachable', 'connection refused');

function start(errors: unknown[]): {
  clock: FakeClock;
  stop: AbortController;
  tries: () => number;
  end: Promise<string>;
} {
  const clock = new FakeClock();
  const stop = new AbortController();
  let tries = 0;
  const run = (): Promise<string> => {
    tries += 1;
    const err = errors.shift();
    return err === undefined ? Promise.resolve('read') : Promise.reject(err);
  };
  const end = persistently({ clock, log: silentLogger }, 'reading', run, stop.signal);
  end.catch(() => undefined); // looked at later
  return { clock, stop, tries: () => tries, end };
}

describe('what is done persistently', () => {
  test('survives a server that cannot be asked for a while', async () => {
    const { clock, tries, end } = start([unreachable(), new ApiError(500, 'InternalError', 'etcd has no leader')]);
    await clock.advanceAsync(10_000);

    await expect(end).resolves.toBe('read');
    expect(tries()).toBe(3);
  });

  test.each([
    new ApiError(403, 'Forbidden', 'no permission'),
    new ApiError(404, 'NotServed', 'not served'),
    new TypeError('a bug'),
  ])('ends at once with what would last: $message', async (err) => {
    const { tries, end } = start([err]);

    await expect(end).rejects.toBe(err);
    expect(tries()).toBe(1);
  });

  test('ends with its signal', async () => {
    const { clock, stop, end } = start([unreachable(), unreachable(), unreachable()]);
    await clock.advanceAsync(1_000);
    stop.abort(new Error('stopping'));

    await expect(end).rejects.toThrow('stopping');
  });
});
