import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import LongestFirst from './longest-first.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const inRoot = (file: string): { path: string } => ({ path: path.join(ROOT, file) });

let folder: string;
let store: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'test-times-'));
  store = path.join(folder, 'times', 'test-times.json');
});
afterEach(() => rmSync(folder, { recursive: true }));

function sorted(...files: string[]): string[] {
  // oxlint-disable-next-line unicorn/no-array-sort -- it is none
  return new LongestFirst(undefined, store).sort(files.map(inRoot)).map((one) => path.relative(ROOT, one.path));
}

/** As jest tells it at the end of a run. */
function ended(times: Record<string, number>, { numPassingTests = 1, numPendingTests = 0 } = {}): void {
  const testResults = Object.entries(times).map(([file, runtime]) => ({
    testFilePath: path.join(ROOT, file),
    numPassingTests,
    numPendingTests,
    perfStats: { runtime },
  }));
  new LongestFirst(undefined, store).cacheResults([], { testResults });
}

const [SMALL, LARGE] = ['hack/test/levels.test.ts', 'hack/check/operator-pages.test.ts'];

describe('order of test files', () => {
  test('is that of their last times', () => {
    ended({ a: 5, b: 50, c: 20 });
    ended({ a: 500 });

    expect(sorted('c', 'b', 'a')).toEqual(['a', 'b', 'c']);
  });

  test('begins with those of which no time is known: by level, the dearest first, then by size', () => {
    ended({ known: 1_000_000 });

    const files = [
      'known',
      SMALL,
      LARGE,
      'test/integration/x.test.ts',
      'test/openstack/x.test.ts',
      'test/faults/x.test.ts',
    ];
    expect(sorted(...files)).toEqual([
      'test/openstack/x.test.ts',
      'test/faults/x.test.ts',
      'test/integration/x.test.ts',
      LARGE,
      SMALL,
      'known',
    ]);
  });

  test.each([{ numPassingTests: 0 }, { numPendingTests: 1 }])('does not count what ran in part: %j', (part) => {
    ended({ a: 50, b: 20 });
    ended({ a: 1 }, part);

    expect(sorted('b', 'a')).toEqual(['a', 'b']);
  });

  test('begins anew where what was stored cannot be read', () => {
    ended({ a: 50 });
    writeFileSync(store, '{"a":');

    ended({ b: 20 });

    expect(JSON.parse(readFileSync(store, 'utf8'))).toEqual({ b: 20 });
  });
});
