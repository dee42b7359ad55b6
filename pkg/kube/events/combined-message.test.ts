import { expect, test } from '@jest/globals';
import fc from 'fast-check';

import { combinedMessage } from './combined-message.ts';

test.each([
  { messages: ['Created Machine a'], want: 'Created Machine a' },
  { messages: ['Created Machine a', 'Created Machine b', 'Created Machine c'], want: 'Created Machine a, b, c' },
  { messages: ['Created Machine a', 'Created VM b'], want: 'Created Machine a, VM b' },
  { messages: ['quota exceeded', 'no such image'], want: 'quota exceeded; no such image' },
  { messages: ['try 1', 'try'], want: 'try 1; try' },
])('$messages are told as "$want"', ({ messages, want }) => {
  expect(combinedMessage(messages)).toBe(`(combined from similar events): ${want}`);
});

test('every message ends somewhere in what is told of all of them', () => {
  fc.assert(
    fc.property(fc.array(fc.lorem({ maxCount: 4 }), { minLength: 1, maxLength: 8 }), (messages) => {
      const told = combinedMessage(messages);
      const lastWords = messages.map((message) => message.split(' ').at(-1) ?? '');
      expect(lastWords.every((word) => told.includes(word))).toBe(true);
    }),
  );
});
