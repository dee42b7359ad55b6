import { expect, test } from '@jest/globals';

import { TokenRaises } from './token-raises.ts';

test('who waits for a token above another is answered when it is above, or when there will be none', async () => {
  const raises = new TokenRaises();
  const answers: string[] = [];
  const waiting = [4n, 5n, 7n, 7n].map(async (token) => {
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
  expect(answers).toEqual(['4 raised', '5 raised', '7 lost', '7 lost']);

  // Who asks anew is not told what was said before.
  const again = [raises.above(4n), raises.above(7n)];
  raises.raisedTo(7);
  raises.end('lost again');
  expect(await Promise.all(again)).toEqual([undefined, 'lost again']);
});
