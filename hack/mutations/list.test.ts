import { existsSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import path from 'node:path';

import { expect, test } from '@jest/globals';

import { MUTATIONS } from './list.ts';
import { levelOf, MisfitError, mutate, type Mutation } from './mutation.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** What is wrong with a row; undefined when nothing is. */
function problemOf(mutation: Mutation): string | undefined {
  const { file, tests } = mutation;
  const missing = [file, ...tests].find((one) => !existsSync(path.join(ROOT, one)));
  if (missing !== undefined) return `${missing} is gone: correct the row ${JSON.stringify(mutation.from)} of ${file}`;
  try {
    stripTypeScriptTypes(mutate(readFileSync(path.join(ROOT, file), 'utf8'), mutation), { mode: 'strip' });
    return undefined;
  } catch (err) {
    const what =
      err instanceof MisfitError ? '' : `${file} is no TypeScript any more with ${JSON.stringify(mutation.to)}: `;
    return `${what}${String(err)}`;
  }
}

test('every mutation fits the source as it is now', () => {
  expect(MUTATIONS.map(problemOf).filter((problem) => problem !== undefined)).toEqual([]);
});

test('no mutation is there twice', () => {
  const texts = MUTATIONS.map(({ file, from, to }) => JSON.stringify([file, from.split(/\s+/), to.split(/\s+/)]));

  expect(texts.filter((text, i) => texts.indexOf(text) !== i)).toEqual([]);
});

test('the tests of a mutation are of one level', () => {
  const mixed = MUTATIONS.filter(({ tests }) => new Set(tests.map((one) => levelOf({ tests: [one] }))).size !== 1);

  expect(mixed).toEqual([]);
});

test.each([
  'pkg/controllers/machine/calls',
  'pkg/controllers/machine/creation',
  'pkg/controllers/machine/deletion',
  'pkg/controllers/machine/drain',
  'pkg/controllers/machine/health',
  'pkg/controllers/machine/node',
  'pkg/controllers/machine-set',
  'pkg/controllers/machine-deployment',
  'pkg/controllers/machine-class',
  'pkg/controllers/safety',
  'pkg/controllers/secret',
  'pkg/cache',
  'pkg/drain',
  'pkg/driver',
  'pkg/gate',
  'pkg/kube',
  'pkg/leader',
  'pkg/reconcile',
])('%s has mutations', (folder) => {
  expect(MUTATIONS.filter(({ file }) => file.startsWith(`${folder}/`)).length).toBeGreaterThan(1);
});
