import { existsSync } from 'node:fs';
import path from 'node:path';

import { describe, expect, test } from '@jest/globals';

import LongestFirst, { LONGEST } from './longest-first.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const inRoot = (file: string): { path: string } => ({ path: path.join(ROOT, file) });

describe('order of test files', () => {
  test('names only files that are there, each once', () => {
    expect(LONGEST.filter((file) => !existsSync(path.join(ROOT, file)))).toEqual([]);
    expect(new Set(LONGEST).size).toBe(LONGEST.length);
  });

  test('begins with the longest, however short their text', () => {
    const [first = '', second = ''] = LONGEST;
    const others = ['hack/test/levels.test.ts', 'test/integration/kube-client.test.ts'];

    // oxlint-disable-next-line unicorn/no-array-sort -- it is none
    const sorted = new LongestFirst().sort([...others, second, first].map(inRoot));

    expect(sorted).toEqual([first, second, ...others.toReversed()].map(inRoot));
  });
});
