import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';

import { expect, test } from '@jest/globals';

import { API_TIERS, APIS, INNER_TIERS, TIERS } from '../../oxlint.config.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const ORDERED = Object.entries({ pkg: TIERS, ...INNER_TIERS })
  .filter(([folder]) => !folder.startsWith('pkg/worlds'))
  .map(([folder, tiers]) => ({ folder, tiers }));

function foldersIn(folder: string): readonly string[] {
  const found = readdirSync(path.join(ROOT, folder), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return found.map(({ name }) => name).toSorted();
}

test.each(ORDERED)('the linter knows each folder of $folder, and no other', ({ folder, tiers }) => {
  expect(tiers.flat().toSorted()).toEqual(foldersIn(folder));
});

test('the linter knows each folder of each API, and no other', () => {
  const found = APIS.flatMap((api) => foldersIn(`pkg/worlds/${api}`));

  expect(APIS).toEqual(foldersIn('pkg/worlds'));
  expect([...new Set(found)].toSorted()).toEqual(API_TIERS.flat().toSorted());
  expect(APIS.map((api) => INNER_TIERS[`pkg/worlds/${api}`])).toEqual(APIS.map(() => API_TIERS));
});

test.each([...ORDERED, { folder: 'pkg/worlds', tiers: API_TIERS }])(
  'the page on the architecture shows the order of $folder',
  async ({ folder, tiers }) => {
    const page = await readFile(path.join(ROOT, 'docs/development/architecture.md'), 'utf8');
    const layers = page.split('\n## Layers\n')[1]?.split('\n## ')[0] ?? '';
    const shown = layers.slice(layers.indexOf(`\`${folder}\``) + folder.length).split('\n\n')[1] ?? '';

    const names = [...shown.matchAll(/`([^`]+)`/g)].flatMap(([, group = '']) => group.split(' '));
    expect(names).toEqual(tiers.flat());
  },
);
