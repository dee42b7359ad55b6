import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';

import { expect, test } from '@jest/globals';

import { INNER_TIERS, TIERS } from '../../oxlint.config.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const ORDERED = Object.entries({ pkg: TIERS, ...INNER_TIERS }).map(([folder, tiers]) => ({ folder, tiers }));

test.each(ORDERED)('the linter knows each folder of $folder, and no other', ({ folder, tiers }) => {
  const found = readdirSync(path.join(ROOT, folder), { withFileTypes: true }).filter((entry) => entry.isDirectory());

  expect(tiers.flat().toSorted()).toEqual(found.map(({ name }) => name).toSorted());
});

test.each(ORDERED)('the page on the architecture shows the order of $folder', async ({ folder, tiers }) => {
  const page = await readFile(path.join(ROOT, 'docs/development/architecture.md'), 'utf8');
  const layers = page.split('\n## Layers\n')[1]?.split('\n## ')[0] ?? '';
  const shown = layers.slice(layers.indexOf(`\`${folder}\``) + folder.length).split('\n\n')[1] ?? '';

  const names = [...shown.matchAll(/`([^`]+)`/g)].flatMap(([, group = '']) => group.split(' '));
  expect(names).toEqual(tiers.flat());
});
