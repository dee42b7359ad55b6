import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { expect, test } from '@jest/globals';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** Rows of docs/development/promises.md: file and title of a test. */
const rows = readFileSync(path.join(ROOT, 'docs/development/promises.md'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| ') && !/^\| (-+|promise) /.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, , file = '', title = '']) => ({ file: file.replaceAll('`', ''), title }));

test('every promise has its test', () => {
  const missing = rows.filter(({ file, title }) => {
    const at = path.join(ROOT, file);
    return !existsSync(at) || title === '' || !readFileSync(at, 'utf8').includes(title);
  });

  expect(missing).toEqual([]);
  expect(rows.length).toBeGreaterThan(5);
});
