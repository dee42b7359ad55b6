import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

import { expect, test } from '@jest/globals';

const ROOT = path.resolve(import.meta.dirname, '../..');
const MAP = 'docs/README.md';

/** Files that a page links to, from the root of the checkout. */
async function linksOf(page: string): Promise<string[]> {
  const text = await readFile(path.join(ROOT, page), 'utf8');
  const links = [...text.matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map(([, link = '']) => link);
  return links.filter((link) => !/^\w+:/.test(link)).map((link) => path.join(path.dirname(page), link));
}

async function pages(): Promise<string[]> {
  const files = await readdir(path.join(ROOT, 'docs'), { recursive: true });
  return files.filter((file) => file.endsWith('.md')).map((file) => path.join('docs', file));
}

test('the map of the documentation names every page', async () => {
  const linked = new Set(await linksOf(MAP));

  expect((await pages()).filter((page) => page !== MAP && !linked.has(page))).toEqual([]);
});

test('every link between pages leads somewhere', async () => {
  const all = [...(await pages()), 'README.md', 'CONTRIBUTING.md', 'CHANGELOG.md'];
  const links = await Promise.all(all.map(async (page) => (await linksOf(page)).map((link) => ({ page, link }))));

  expect(links.flat().filter(({ link }) => !existsSync(path.join(ROOT, link)))).toEqual([]);
  expect(links.flat().length).toBeGreaterThan(20);
});

/** Files and folders of the source that a page names between backticks, or alone in a picture. */
async function sourcesNamedIn(page: string): Promise<string[]> {
  const text = await readFile(path.join(ROOT, page), 'utf8');
  return [...text.matchAll(/(?<![\w./-])(?:cmd|crds|deploy|hack|pkg|proto|test)\/[\w./-]*\w/g)].map(([name]) => name);
}

test('every file and folder of the source that a page names is there', async () => {
  const named = await Promise.all(
    [...(await pages()), 'README.md', 'CONTRIBUTING.md'].map(async (page) =>
      (await sourcesNamedIn(page)).map((name) => ({ page, name })),
    ),
  );

  expect(named.flat().filter(({ name }) => !existsSync(path.join(ROOT, name)))).toEqual([]);
  expect(named.flat().length).toBeGreaterThan(50);
});

test('every file that the way of a deletion names is there', async () => {
  const text = await readFile(path.join(ROOT, 'docs/development/architecture.md'), 'utf8');
  const [, way = ''] = /## The way of a deletion([^]*?)\n## /.exec(text) ?? [];
  const files = [...way.matchAll(/(?<![\w./-])(?:(?:calls|deletion|drain)\/)?[\w-]+\.ts/g)].map(([name]) => name);
  const folder = path.join(ROOT, 'pkg/controllers/machine');

  const missing = files.filter((file) => !existsSync(path.join(folder, file)) && !way.includes(`pkg/drain/${file}`));
  expect(missing.filter((file) => !way.includes(`pkg/driver/${file}`))).toEqual([]);
  expect(files.length).toBeGreaterThan(10);
});
