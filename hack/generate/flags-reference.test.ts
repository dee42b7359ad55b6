import { expect, test } from '@jest/globals';

import { asMarkdown, flagsReference } from './flags-reference.ts';

test.each([
  { text: '"*", or also as "*,mirantis"', want: String.raw`"\*", or also as "\*,mirantis"` },
  { text: '<provider>=<address>', want: String.raw`\<provider>=\<address>` },
  { text: 'as _they_ are', want: String.raw`as \_they\_ are` },
])('$text is shown as it is', ({ text, want }) => {
  expect(asMarkdown(text)).toBe(want);
});

test('the page says what the flags take', async () => {
  const page = await flagsReference();

  expect(page).toContain(String.raw`"\*", or a comma-separated list`);
  expect(page).toContain(String.raw`\<provider>=\<address>`);
});
