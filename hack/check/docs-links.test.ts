import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

import { expect, test } from '@jest/globals';

const ROOT = path.resolve(import.meta.dirname, '../..');
/** The maps of the two trees: pages for users, and those for contributors. */
const MAP = 'docs/README.md';
const CONTRIBUTORS_MAP = 'docs/development/README.md';

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

function isForContributors(page: string): boolean {
  return /^docs\/(?:development|decisions)\//.test(page);
}

test('the map for users names every page for them, and of the others their map alone', async () => {
  const linked = await linksOf(MAP);
  const forUsers = (await pages()).filter((page) => page !== MAP && !isForContributors(page));

  expect(forUsers.filter((page) => !linked.includes(page))).toEqual([]);
  expect(linked.filter((page) => isForContributors(page))).toEqual([CONTRIBUTORS_MAP]);
});

test('the map for contributors names every page for them', async () => {
  const linked = new Set(await linksOf(CONTRIBUTORS_MAP));
  const forThem = (await pages()).filter((page) => page !== CONTRIBUTORS_MAP && isForContributors(page));

  expect(forThem.filter((page) => !linked.has(page))).toEqual([]);
});

test('every link between pages leads somewhere', async () => {
  const all = [...(await pages()), 'README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'];
  const links = await Promise.all(all.map(async (page) => (await linksOf(page)).map((link) => ({ page, link }))));

  expect(links.flat().filter(({ link }) => !existsSync(path.join(ROOT, link)))).toEqual([]);
  expect(links.flat().length).toBeGreaterThan(20);
});

/** Anchors of the headings of a page, as GitHub makes them. */
async function anchorsOf(page: string): Promise<Set<string>> {
  const text = await readFile(path.join(ROOT, page), 'utf8');
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading.toLowerCase());
  return new Set(headings.map((heading) => heading.replaceAll(/[^\w\- ]/g, '').replaceAll(' ', '-')));
}

test('every link to a part of a page leads to a heading', async () => {
  const all = [...(await pages()), 'README.md', 'CONTRIBUTING.md', 'SECURITY.md'];
  const missing = await Promise.all(
    all.map(async (page) => {
      const text = await readFile(path.join(ROOT, page), 'utf8');
      const links = [...text.matchAll(/\]\(([^)#\s:]*)#([^)\s]+)\)/g)];
      const found = await Promise.all(
        links.map(async ([, file = '', anchor = '']) =>
          (await anchorsOf(file === '' ? page : path.join(path.dirname(page), file))).has(anchor),
        ),
      );
      return links.filter((_, at) => found[at] !== true).map(([link]) => `${page}: ${link}`);
    }),
  );

  expect(missing.flat()).toEqual([]);
});

/** Files and folders of the source that a page names between backticks, or alone in a picture. */
async function sourcesNamedIn(page: string): Promise<string[]> {
  const text = await readFile(path.join(ROOT, page), 'utf8');
  return [...text.matchAll(/(?<![\w./-])(?:cmd|crds|deploy|hack|pkg|proto|test)\/[\w./-]*\w/g)].map(([name]) => name);
}

test('every file and folder of the source that a page names is there', async () => {
  const named = await Promise.all(
    [...(await pages()), 'README.md', 'CONTRIBUTING.md', 'SECURITY.md'].map(async (page) =>
      (await sourcesNamedIn(page)).map((name) => ({ page, name })),
    ),
  );

  expect(named.flat().filter(({ name }) => !existsSync(path.join(ROOT, name)))).toEqual([]);
  expect(named.flat().length).toBeGreaterThan(50);
});

/** Files of an experiment that a page describes, and that were not kept. */
const EXPERIMENTS = ['maintenance/repair.ts'];

test('every file that a page names by the end of its path is there', async () => {
  const folders = ['cmd', 'hack', 'packages', 'pkg', 'test'];
  const trees = await Promise.all(folders.map((folder) => readdir(path.join(ROOT, folder), { recursive: true })));
  const files = trees.flatMap((tree, at) => tree.map((file) => `/${folders[at] ?? ''}/${file}`));
  const named = await Promise.all(
    (await pages()).map(async (page) => {
      const text = await readFile(path.join(ROOT, page), 'utf8');
      return [...text.matchAll(/`([\w/-][\w./-]*\.ts)`/g)].map(([, name = '']) => ({ page, name }));
    }),
  );

  const isThere = (name: string): boolean =>
    existsSync(path.join(ROOT, name)) || EXPERIMENTS.includes(name) || files.some((file) => file.endsWith(`/${name}`));
  expect(named.flat().filter(({ name }) => !isThere(name))).toEqual([]);
  expect(named.flat().length).toBeGreaterThan(100);
});

/** Where the pictures of the ways look for a file that they name. */
const WAYS_FROM = [
  '',
  'pkg/work/reconcile',
  'pkg/controllers',
  'pkg/controllers/machine',
  'pkg/controllers/machine-deployment',
  'pkg/worlds/mirantis/controllers',
  'pkg/worlds/cluster-api/controllers',
  'pkg/worlds/ironcore/controllers',
];

test.each([
  { way: 'One pass', least: 4 },
  { way: 'Processes and threads', least: 5 },
  { way: 'Deletion flow', least: 10 },
  { way: 'Rollout flow', least: 15 },
  { way: 'Outage flow', least: 3 },
  { way: 'Machines of other APIs', least: 30 },
])('every file that the picture of "$way" names is there', async ({ way, least }) => {
  const text = await readFile(path.join(ROOT, 'docs/development/architecture.md'), 'utf8');
  const section = text.split(`\n## ${way}\n`)[1]?.split('\n## ')[0] ?? '';
  const files = [...section.matchAll(/(?<![\w./-])[\w/-]+\.ts/g)].map(([name]) => name);

  const missing = files.filter((file) => !WAYS_FROM.some((folder) => existsSync(path.join(ROOT, folder, file))));
  expect(missing).toEqual([]);
  expect(files.length).toBeGreaterThanOrEqual(least);
});
