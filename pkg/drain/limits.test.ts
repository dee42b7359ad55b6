import { expect, test } from '@jest/globals';

import { DrainLimits } from './limits.ts';

const never = new AbortController().signal;

test('lends no more watches than it has, and takes them back', () => {
  const limits = new DrainLimits({ watches: 1 });

  const giveBack = limits.takeWatch();

  expect(limits.takeWatch()).toBeUndefined();
  giveBack?.();
  expect(limits.takeWatch()).toBeDefined();
});

test('sends no more requests at once than it may', async () => {
  const limits = new DrainLimits({ requests: 2 });
  let running = 0;
  let most = 0;
  const send = async (): Promise<void> => {
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setImmediate(resolve));
    running -= 1;
  };

  await Promise.all(Array.from({ length: 10 }, () => limits.request(send, never)));

  expect(most).toBe(2);
});

test('drops a waiting request whose drain has ended', async () => {
  const limits = new DrainLimits({ requests: 1 });
  const abort = new AbortController();
  const { promise: firstAnswer, resolve: finishFirst } = Promise.withResolvers<void>();
  const first = limits.request(() => firstAnswer, never);
  let sent = false;
  const second = limits.request(() => {
    sent = true;
    return Promise.resolve();
  }, abort.signal);

  abort.abort(new Error('over'));

  await expect(second).rejects.toThrow('over');
  finishFirst();
  await first;
  expect(sent).toBe(false);
});
