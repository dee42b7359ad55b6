import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

import { expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';

import { DEFINITIONS } from './crds/all.ts';
import type { Schema } from './crds/schema.ts';
import { generatedFiles } from './files.ts';
import { WORLDS } from './worlds/index.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** Those that a page of the reference is made of. */
const DOCUMENTED = [
  ...DEFINITIONS,
  ...WORLDS.flatMap(({ page, definitions }) => (page === undefined ? [] : definitions)),
];

/** Made once, for all tests: it takes seconds. */
const files = await generatedFiles();

test('all generated files are current: otherwise run `npm run generate`', async () => {
  for (const [file, want] of files) {
    const have = await readFile(path.join(ROOT, file), 'utf8');
    expect({ file, isCurrent: have === want }).toEqual({ file, isCurrent: true });
  }
});

test.each(['crds', 'test/crds-original'])(
  '%s holds nothing but what is generated',
  async (folder) => {
    const have = await readdir(path.join(ROOT, folder), { withFileTypes: true, recursive: true });

    const held = have
      .filter((one) => one.isFile())
      .map((one) => path.relative(ROOT, path.join(one.parentPath, one.name)));
    expect(held.filter((file) => !files.has(file))).toEqual([]);
  },
  60_000,
);

test('kubectl, which reads YAML 1.1, reads the definitions as they are meant: On is no boolean', async () => {
  for (const [file, text] of files) {
    if (!file.endsWith('.yaml')) continue;
    expect({ file, objects: read(text, '1.1') }).toEqual({ file, objects: read(text, '1.2') });
  }
});

test('every field of the CRDs has a description', () => {
  const without = DOCUMENTED.flatMap(({ kind, properties }) => undescribed(properties, kind));

  expect(without).toEqual([]);
});

test('no column names several values: the API server would show the first of them alone', () => {
  const all = DOCUMENTED.flatMap(({ kind, columns }) => columns.map((column) => ({ kind, ...column })));

  expect(all.filter(({ jsonPath }) => jsonPath.includes('*'))).toEqual([]);
});

test('kubectl get nodelabelpolicies shows which labels are allowed, and for which Machines', () => {
  const { columns = [] } = DEFINITIONS.find(({ kind }) => kind === 'NodeLabelPolicy') ?? {};

  const shown = columns.map(({ jsonPath, type }) => `${jsonPath} ${type}`);
  expect(shown).toEqual(expect.arrayContaining(['.spec.machineLabels string', '.spec.allowed string']));
});

function read(text: string, version: '1.1' | '1.2'): unknown[] {
  return [...parseAllDocuments(text, { version })].map((document): unknown => document.toJS());
}

function undescribed(properties: Record<string, Schema>, prefix: string): string[] {
  return Object.entries(properties).flatMap(([name, schema]) => [
    ...(schema.description === undefined ? [`${prefix}.${name}`] : []),
    ...undescribed(schema.properties ?? {}, `${prefix}.${name}`),
    ...undescribed(schema.items?.properties ?? {}, `${prefix}.${name}[]`),
  ]);
}
