import { describe, expect, test } from '@jest/globals';

import { MutationCounter } from './interceptor.ts';

describe('MutationCounter', () => {
  test.each([
    { point: 'before', sent: ['first', 'third'] },
    { point: 'after', sent: ['first', 'second', 'third'] },
  ] as const)('fails the second mutation $point it is sent', async ({ point, sent }) => {
    const reached: string[] = [];
    const hit: string[] = [];
    const counter = new MutationCounter({ n: 2, point }, ({ text }) => {
      hit.push(text);
      throw new Error('crash');
    });
    const run = (text: string): Promise<string> =>
      counter.intercept({ text }, async () => {
        reached.push(text);
        return text;
      });

    const results = [];
    for (const text of ['first', 'second', 'third']) results.push(await run(text).catch((err: Error) => err.message));

    expect(results).toEqual(['first', 'crash', 'third']);
    expect(reached).toEqual(sent);
    expect(hit).toEqual(['second']);
    expect(counter.count).toBe(3);
  });
});
