import { expect, test } from '@jest/globals';

import { CannotStartError } from './process/lifecycle.ts';
import { startTogether } from './cannot-start.ts';

const refuse = (message: string): Promise<void> => Promise.reject(new CannotStartError(message));

test('what cannot start is told of all who start together, each thing once', async () => {
  const slow = Promise.withResolvers<void>();
  const started = startTogether([refuse('apply a'), slow.promise, refuse('apply b'), refuse('apply a')]);
  slow.reject(new CannotStartError('apply c'));

  await expect(started).rejects.toMatchObject({ name: 'CannotStartError', message: 'apply a; apply c; apply b' });
});

test('what nobody can mend is not told as if somebody could', async () => {
  const bug = new Error('bug');

  await expect(startTogether([Promise.reject(bug), refuse('apply a')])).rejects.toBe(bug);
});

test('all who start are waited for', async () => {
  await expect(startTogether([Promise.resolve(), Promise.resolve()])).resolves.toBeUndefined();
});
