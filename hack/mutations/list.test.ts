import { existsSync, globSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import path from 'node:path';

import { expect, test } from '@jest/globals';

import { EXPLAINED, explanationOf } from './explained.ts';
import { MUTATIONS } from './list.ts';
import { MisfitError, Pieces, type Located, type Mutation } from './mutation.ts';
import { readSources } from './sources.ts';
import { apply, type Edit } from './tree/edit.ts';
import { mutantsOf } from './tree/mutants.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const SOURCES = new Map(readSources(ROOT));
const TESTS = new Set(
  globSync('{cmd,pkg,packages,hack}/**/*.test.ts', { cwd: ROOT }).map((file) => path.basename(file)),
);
const PIECES = new Pieces(SOURCES);

/** What is wrong with a row; undefined when nothing is. */
function problemOf(mutation: Mutation): string | undefined {
  const { above, tests = [] } = mutation;
  if (above !== undefined && !existsSync(path.join(ROOT, above.file))) {
    return `${above.file} is gone: correct the row ${JSON.stringify(mutation.from)} of ${mutation.in}`;
  }
  const unnamed = tests.find((name) => !TESTS.has(name));
  if (unnamed !== undefined)
    return `no test file is called ${unnamed}: correct the row ${JSON.stringify(mutation.from)} of ${mutation.in}`;
  try {
    const { file, edit } = PIECES.locate(mutation);
    stripTypeScriptTypes(apply(SOURCES.get(file) ?? '', edit), { mode: 'strip' });
    return undefined;
  } catch (err) {
    const what =
      err instanceof MisfitError
        ? ''
        : `${mutation.in} is no TypeScript any more with ${JSON.stringify(mutation.to)}: `;
    return `${what}${String(err)}`;
  }
}

test('every mutation fits the source as it is now', () => {
  expect(MUTATIONS.map(problemOf).filter((problem) => problem !== undefined)).toEqual([]);
});

test('every explained survivor is a mutant of the source as it is now', () => {
  const stale = EXPLAINED.filter((explanation) => {
    const name = explanation.in.replace(/^.*\./, '');
    const mutants = [...SOURCES]
      .filter(([, source]) => source.includes(name))
      .flatMap(([file, source]) => mutantsOf(file, source));
    return !mutants.some((mutant) => explanationOf(mutant, [explanation]) !== undefined);
  });

  expect(stale).toEqual([]);
});

test('no mutation is there twice, and none that the tool makes', () => {
  const textOf = (file: string, edit: Edit): string => apply(SOURCES.get(file) ?? '', edit).replaceAll(/\s+/g, ' ');
  const located = MUTATIONS.map((mutation) => ({ mutation, ...PIECES.locate(mutation) }));
  const texts = located.map(({ file, edit }) => textOf(file, edit));
  const files = new Set(located.map(({ file }) => file));
  const made = new Map([...files].map((file) => [file, mutantsOf(file, SOURCES.get(file) ?? '')]));
  const isMade = ({ file, edit }: Located): boolean => {
    const near = (made.get(file) ?? []).filter(({ start, end }) => start <= edit.end && edit.start <= end);
    return near.some((mutant) => textOf(file, mutant) === textOf(file, edit));
  };

  expect(texts.filter((one, i) => texts.indexOf(one) !== i)).toEqual([]);
  // It tries what it makes with unit tests alone.
  const unit = located.filter(({ mutation }) => mutation.above === undefined);
  expect(unit.filter(isMade).map(({ mutation }) => mutation)).toEqual([]);
});
