import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { clusterMachine } from '../../../test/cluster-machine.ts';
import { SETTINGS } from './cluster-settings.ts';
import { providerStatusOf } from './provider-status.ts';
import { readProviderValue } from './provider-value.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../../docs/operations/mirantis.md'), 'utf8');

/** Cells of the rows of a table, found by its first heading, without backticks in the first. */
function rows(heading: string): string[][] {
  const table = PAGE.split('\n\n').find((part) => part.startsWith(`| ${heading} `) && !used.has(part));
  if (table === undefined) throw new Error(`no table of ${heading}`);
  used.add(table);
  const cells = table.split('\n').map((line) => line.split('|').map((cell) => cell.trim()));
  return cells.slice(2).flatMap(([, name = '', ...rest]) => (name === '' ? [] : [[name.replaceAll('`', ''), ...rest]]));
}
const used = new Set<string>();

describe('the page says what there is', () => {
  test('of the settings of a Cluster', () => {
    expect(Object.fromEntries(rows('key').map(([key, what]) => [key, what]))).toEqual(SETTINGS);
  });

  test('of the fields', () => {
    const { value } = readProviderValue(clusterMachine());
    const { server, ...others } = value ?? {};
    const read = [...Object.keys(others), ...Object.keys(server ?? {})].map((name) =>
      name === 'rootDiskSize' ? 'bootFromVolume' : name,
    );

    expect(new Set(rows('field').map(([field]) => field))).toEqual(new Set(read));
  });

  test('of the status', () => {
    const known = { machine: clusterMachine(), ours: undefined, node: undefined, problems: [], upgradeIndex: 1 };
    const members = Object.keys(providerStatusOf(known)).filter((name) => name !== 'apiVersion' && name !== 'kind');

    expect(new Set(rows('field').map(([field]) => field))).toEqual(new Set(members));
  });
});
