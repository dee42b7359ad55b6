import { describe, expect, test } from '@jest/globals';

import { sumUp } from './summary.ts';

describe('summary of a test run', () => {
  test.each([
    { title: 'nothing ran', lines: '', want: { passed: 0, failed: 0, skipped: 0 } },
    { title: 'one level', lines: '3 passed, 1 failed, 2 skipped\n', want: { passed: 3, failed: 1, skipped: 2 } },
    {
      title: 'several levels',
      lines: '3 passed, 0 failed, 0 skipped\n10 passed, 2 failed, 1 skipped\n',
      want: { passed: 13, failed: 2, skipped: 1 },
    },
  ])('adds up the levels: $title', ({ lines, want }) => {
    expect(sumUp(lines)).toEqual(want);
  });
});
