import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { expect, test } from '@jest/globals';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** Rows of a page's tables: file and title of a test. */
function rowsOf(page: string): readonly { readonly file: string; readonly title: string }[] {
  return readFileSync(path.join(ROOT, page), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !/^\| (-+|promise|what) /.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map(([, , file = '', title = '']) => ({ file: file.replaceAll('`', ''), title }));
}

test.each([
  'docs/development/promises.md',
  'docs/development/acceptance-openstack.md',
  'docs/development/acceptance-ironcore.md',
  'docs/development/acceptance-cluster-api.md',
])('everything that %s promises has its test', (page) => {
  const rows = rowsOf(page);

  const missing = rows.filter(({ file, title }) => {
    const at = path.join(ROOT, file);
    return !existsSync(at) || title === '' || !readFileSync(at, 'utf8').includes(title);
  });

  expect(missing).toEqual([]);
  expect(rows.length).toBeGreaterThan(5);
});
