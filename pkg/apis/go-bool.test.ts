import { expect, test } from '@jest/globals';

import { parseGoBool } from './go-bool.ts';

test.each([
  ...['1', 't', 'T', 'TRUE', 'true', 'True'].map((text) => ({ text, value: true })),
  ...['0', 'f', 'F', 'FALSE', 'false', 'False'].map((text) => ({ text, value: false })),
  ...['', ' true', 'yes', 'tRUE', '2', undefined].map((text) => ({ text, value: undefined })),
])('reads $text as $value', ({ text, value }) => {
  expect(parseGoBool(text)).toBe(value);
});
