import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { refusedIn, textsIn } from './words.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');

/** Where texts are in plain English by now. What is rewritten next is added. */
const PLAIN = [
  'cmd/**/*.ts',
  'pkg/{activity,apis,autoscaler,cache,clock,config,conformance,drain,driver,events,gate,health,ironcore-runtime,kube,leader,log,metrics,operator,preflight,process,reconcile,workqueue}/**/*.ts',
  'pkg/drivers/**/*.ts',
  'pkg/controllers/**/*.ts',
];

/** Pages whose headings are. */
const PAGES = ['README.md', 'docs/{concepts,operations}/*.md'];

/** The lines of a page that are no example of code. */
function linesOf(page: string): readonly string[] {
  return read(page)
    .replaceAll(/^( *)```[^]*?^\1```$/gm, '')
    .split('\n');
}

test('texts that users see have no words of the dialect', () => {
  const files = globSync(PLAIN, { cwd: ROOT, exclude: ['**/*.test.ts', '**/gen/**'] });
  const found = files.flatMap((file) =>
    textsIn(file, read(file)).flatMap(({ line, text }) => {
      const why = refusedIn(text);
      return why === undefined ? [] : [`${file}:${line}: ${why}: ${text}`];
    }),
  );

  expect(found).toEqual([]);
  expect(files.length).toBeGreaterThan(50);
});

/** Pages whose whole prose is. */
const PROSE = [
  'README.md',
  'docs/README.md',
  'docs/development/README.md',
  'docs/{concepts,runbooks}/*.md',
  'docs/operations/{deletion,faq,maintenance,running,troubleshooting}.md',
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

test('headings have none either', () => {
  const found = globSync(PAGES, { cwd: ROOT }).flatMap((page) => {
    const headings = linesOf(page).filter((line) => line.startsWith('#'));
    return headings.flatMap((heading) => {
      const why = refusedIn(heading);
      return why === undefined ? [] : [`${page}: ${why}: ${heading}`];
    });
  });

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
