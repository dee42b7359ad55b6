import { expect, test } from '@jest/globals';

import { OneAtATime } from './turns.ts';

test('one at a time works on a thing, also when somebody gave up waiting, and others do not wait', async () => {
  const turns = new OneAtATime();
  const never = new AbortController().signal;
  const giveUp = new AbortController();
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const log: string[] = [];

  const first = turns.take('a', never, async () => {
    log.push('first begins');
    await held;
    log.push('first ends');
  });
  const second = turns.take('a', giveUp.signal, async () => void log.push('second'));
  giveUp.abort(new Error('given up'));
  await expect(second).rejects.toThrow('given up');
  const third = turns.take('a', never, async () => void log.push('third'));
  await turns.take('b', never, async () => void log.push('other'));
  release();
  await Promise.all([first, third]);

  expect(log).toEqual(['first begins', 'other', 'first ends', 'third']);
});

test('work that fails lets the next one in', async () => {
  const turns = new OneAtATime();
  const { signal } = new AbortController();
  await expect(turns.take('a', signal, async () => await Promise.reject(new Error('no')))).rejects.toThrow('no');

  await expect(turns.take('a', signal, async () => await Promise.resolve('yes'))).resolves.toBe('yes');
});
