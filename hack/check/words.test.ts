import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { refusedIn, textsIn } from './words.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');

/** Where programs have their texts. */
const SOURCES = ['cmd/**/*.ts', 'hack/playground/*.ts', 'pkg/**/*.ts', 'packages/providers/**/*.ts'];

/** The lines of a page without examples of code and names in backticks. */
function linesOf(page: string): readonly string[] {
  return read(page)
    .replaceAll(/^( *)```[^]*?^\1```$/gm, '')
    .replaceAll(/`[^`\n]*`/g, '')
    .split('\n');
}

test('texts that users see have no words of the dialect', () => {
  const files = globSync(SOURCES, { cwd: ROOT, exclude: ['**/*.test.ts', '**/gen/**'] });
  const found = files.flatMap((file) =>
    textsIn(file, read(file)).flatMap(({ line, text }) => {
      const why = refusedIn(text);
      return why === undefined ? [] : [`${file}:${line}: ${why}: ${text}`];
    }),
  );

  expect(found).toEqual([]);
  expect(files.length).toBeGreaterThan(500);
});

/** Pages for users, and those that they link to first. */
const PROSE = [
  '{CONTRIBUTING,README,SECURITY}.md',
  'docs/README.md',
  'docs/{concepts,development,operations,reference,runbooks}/*.md',
  'examples/drivers/*/README.md',
  'packages/*/README.md',
];

test('pages in plain English have none in any line', () => {
  const found = globSync(PROSE, { cwd: ROOT }).flatMap((page) =>
    linesOf(page).flatMap((line) => {
      const why = refusedIn(line);
      return why === undefined ? [] : [`${page}: ${why}: ${line}`];
    }),
  );

  expect(found).toEqual([]);
});

describe('a text', () => {
  test.each([
    { text: 'the driver is told what it needs', why: '"told", better: reported' },
    { text: 'Nobody looks after it', why: '"Nobody", better: no controller, no user' },
    { text: 'the drain goes on', why: '"goes on", better: continues' },
    { text: 'the finalizer goes', why: '"goes", better: is deleted, is removed' },
    { text: 'standing in the untold goings-on', why: undefined },
  ])('$text: $why', ({ text, why }) => {
    expect(refusedIn(text)).toBe(why);
  });

  test('is a literal or a part of a template, of more than one word, in the code', () => {
    const source = "// not a comment\nconst one = 'two words';\nconst two = ['word', `before ${one} it`];\n";

    expect(textsIn('a.ts', source)).toEqual([
      { line: 2, text: 'two words' },
      { line: 3, text: 'before ' },
      { line: 3, text: ' it' },
    ]);
  });
});
