import { expect, test } from '@jest/globals';

import { secondsToShrink } from './shrinking.ts';

test.each([
  { what: 'a seed that is run alone', typed: { seed: 17 }, seconds: 60 },
  { what: 'a seed whose trace is written', typed: { seed: 17, trace: 'FILE' }, seconds: 0 },
  { what: 'one of several seeds', typed: {}, seconds: 0 },
  { what: 'a seed for which somebody says it', typed: { seed: 17, shrink: 0 }, seconds: 0 },
  { what: 'one of several for which somebody says it', typed: { trace: 'FILE', shrink: 5 }, seconds: 5 },
])('$what is simplified for $seconds seconds', ({ typed, seconds }) => {
  expect(secondsToShrink({ shrink: undefined, seed: undefined, trace: undefined, ...typed })).toBe(seconds);
});
