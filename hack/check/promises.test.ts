import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { expect, test } from '@jest/globals';

const ROOT = path.resolve(import.meta.dirname, '../..');
const PAGES = [
  'docs/development/promises.md',
  'docs/development/acceptance-openstack.md',
  'docs/development/acceptance-ironcore.md',
  'docs/development/acceptance-cluster-api.md',
];

/** Tags in the rows of a page's tables: the last cell, in backticks. */
function tagsOf(page: string): string[] {
  const lines = readFileSync(path.join(ROOT, page), 'utf8').split('\n');
  return lines.filter((line) => line.startsWith('| ')).flatMap((line) => /\| `([^`]+)` +\|$/.exec(line)?.[1] ?? []);
}

/** Tags of tests: a line `// promise: <tag>` above each, maybe with other lines of a comment below. */
function tagged(): { readonly tag: string; readonly isOfTest: boolean }[] {
  const files = globSync('{cmd,pkg,packages,test}/**/*.ts', { cwd: ROOT, exclude: ['**/gen/**'] });
  return files.flatMap((file) => {
    const lines = readFileSync(path.join(ROOT, file), 'utf8').split('\n');
    return lines.flatMap((line, i) => {
      const [, tag] = /^ *\/\/ promise: (.+)$/.exec(line) ?? [];
      const next = lines.slice(i).find((one) => !/^ *\/\//.test(one)) ?? '';
      return tag === undefined ? [] : [{ tag, isOfTest: /^ *(test|testInTurn|describe)\b/.test(next) }];
    });
  });
}

const TAGS = tagged();
const TAGGED = new Set(TAGS.map(({ tag }) => tag));
const PROMISED = PAGES.map((page) => ({ page, tags: tagsOf(page) }));

test.each(PROMISED)('everything that $page promises has its test', ({ tags }) => {
  expect(tags.filter((tag) => !TAGGED.has(tag))).toEqual([]);
  expect(tags.length).toBeGreaterThan(5);
});

test('every tag of a test is promised, on one page', () => {
  const all = PROMISED.flatMap(({ tags }) => tags);

  expect([...TAGGED].filter((tag) => !all.includes(tag))).toEqual([]);
  expect(all.filter((tag, i) => all.indexOf(tag) !== i)).toEqual([]);
});

test('every tag is above a test', () => {
  expect(TAGS.filter(({ isOfTest }) => !isOfTest)).toEqual([]);
});

test('every row of a table there has a tag', () => {
  const rows = PAGES.flatMap((page) => readFileSync(path.join(ROOT, page), 'utf8').split('\n')).filter(
    (line) => line.startsWith('| ') && !/^\| (-+|promise|what) /.test(line),
  );

  expect(rows.filter((line) => !/\| `[^`]+` +\|$/.test(line))).toEqual([]);
});
