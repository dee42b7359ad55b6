import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { expect, test } from '@jest/globals';

const ROOT = path.resolve(import.meta.dirname, '../..');
const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...globSync('docs/**/*.md', { cwd: ROOT, exclude: ['docs/reference/{api,commands,error-codes,flags,metrics}.md'] }),
];

const LONGEST_LINE = 140;
const LONGEST_PARAGRAPH = 500;

/** Paragraphs and list items of a page; tables, code and headings left out. */
function paragraphsOf(page: string): string[] {
  const text = readFileSync(path.join(ROOT, page), 'utf8').replaceAll(/^( *)```[^]*?^\1```$/gm, '');
  return text.split(/\n\n+|\n(?= *(?:[-*]|\d+\.) )/).filter((block) => !/^\s*(?:\||#|$)/.test(block));
}

test.each(PAGES)('%s has no long line of prose, and no long paragraph', (page) => {
  const paragraphs = paragraphsOf(page);
  const lines = paragraphs.flatMap((paragraph) => paragraph.split('\n'));

  expect(lines.filter((line) => line.length > LONGEST_LINE)).toEqual([]);
  expect(paragraphs.filter((paragraph) => shown(paragraph).length > LONGEST_PARAGRAPH)).toEqual([]);
});

/** As git leaves them, and as they are after formatting. */
const MERGE_MARKERS = /^ *(?:<{7}|\\?={7}$|>{7}|(?:> ){6}>)/;

test.each([...PAGES, 'CHANGELOG.md'])('%s holds nothing that a merge has left', (page) => {
  const lines = readFileSync(path.join(ROOT, page), 'utf8').split('\n');

  expect(lines.filter((line) => MERGE_MARKERS.test(line))).toEqual([]);
});

/** What a reader sees of a paragraph: links without their addresses, white space as one. */
function shown(paragraph: string): string {
  return paragraph
    .replaceAll(/\]\([^)]*\)/g, ']')
    .replaceAll(/\s+/g, ' ')
    .trim();
}
