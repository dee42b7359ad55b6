import { expect, test } from '@jest/globals';

import { ApiError, mayHaveHappened } from './errors.ts';

test.each([
  { code: 0, may: true },
  { code: 409, may: false },
  { code: 429, may: false },
  { code: 500, may: true },
  { code: 503, may: true },
])('a write that ends with $code may have happened: $may', ({ code, may }) => {
  expect(mayHaveHappened(new ApiError(code, 'Unknown', 'x'))).toBe(may);
});

test('a write for which there were no credentials has not happened', () => {
  expect(mayHaveHappened(new ApiError(0, 'NoCredentials', 'x'))).toBe(false);
});
