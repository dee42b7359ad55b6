import { expect, test } from '@jest/globals';

import { TokenRaises } from './token-raises.ts';

test('who waits for a token above another is answered when it is above, or when there will be none', async () => {
  const raises = new TokenRaises();
  const answers: string[] = [];
  const waiting = [4n, 5n, 7n].map(async (token) => {
    const why = await raises.above(token);
    answers.push(`${token} ${why ?? 'raised'}`);
  });

  raises.raisedTo(5);
  await waiting[0];
  expect(answers).toEqual(['4 raised']);
  raises.raisedTo(6);
  await waiting[1];
  raises.end('lost');
  await Promise.all(waiting);
  expect(answers).toEqual(['4 raised', '5 raised', '7 lost']);
});
