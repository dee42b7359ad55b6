import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { expect, test } from '@jest/globals';

import { faultRows } from '../../test/faults/fault-rows.ts';
import { KNOWN_DEFECTS } from '../../test/simulation/known-defects/defects.ts';
import { ROWS } from '../../test/simulation/requests/all.ts';
import { DISTURBANCES } from '../../test/simulation/worlds/cells/cell-faults.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const DOCS = 'docs/development';
const read = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8');
const PAGE = read(`${DOCS}/simulation.md`);

/** A section of a page, from its title to the next one. */
function section(page: string, title: string): string {
  const [, text] = page.split(`\n## ${title}\n`);
  if (text === undefined) throw new Error(`there is no section ${title}`);
  return text.split('\n## ')[0]!;
}

/** Cells of the rows of its tables, without their heads. */
function rowsOf(text: string): string[][] {
  const blocks = text.trim().split('\n\n');
  const lines = blocks.flatMap((block) => (block.startsWith('| ') ? block.trim().split('\n').slice(2) : []));
  return lines.map((line) => line.split(' | ').map((cell) => cell.replaceAll(/^\| *| *\|?$/g, '')));
}

const quoted = (cell = ''): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
const numbersIn = (text: string): number[] => [...text.matchAll(/\b\d[\d,]*\b/g)].map(([number]) => Number(number));

const JUDGED = rowsOf(section(PAGE, 'Promises that seeds judge'));
const INVARIANTS = new Set(rowsOf(section(PAGE, 'Invariants')).map(([invariant]) => invariant));
const PROMISED = rowsOf(read(`${DOCS}/promises.md`)).flatMap((cells) => quoted(cells.at(-1)));
const DEFECTS = section(PAGE, 'Known defects').split('\nThese defects were not found');
const FOUND = new Set(rowsOf(DEFECTS[0]!).map(([name]) => name));
const NOT_FOUND = rowsOf(DEFECTS[1]!).map(([name]) => name!);

/** Whether there is a test of that title. */
function isTest(judge: string): boolean {
  const [, file = '', title = ''] = /^`([\w.-]+\.test\.ts)`: (.+)$/.exec(judge) ?? [];
  const [found] = globSync(`test/{crash-points,simulation/worlds}/**/${file}`, { cwd: ROOT });
  return file !== '' && found !== undefined && read(found).includes(`'${title}'`);
}

test('seeds are said to judge only what is promised, by invariants and tests that there are', () => {
  const tags = JUDGED.flatMap(([cell]) => quoted(cell));

  expect(tags.filter((tag) => !PROMISED.includes(tag))).toEqual([]);
  expect(JUDGED.map(([, judge = '']) => judge).filter((judge) => !INVARIANTS.has(judge) && !isTest(judge))).toEqual([]);
});

test('each invariant that is said to judge a promise has found a known defect', () => {
  const ofInvariants = JUDGED.filter(([, judge]) => INVARIANTS.has(judge));
  const named = ofInvariants.map(([, , defects]) => quoted(defects));

  expect(named.filter((defects) => defects.length === 0)).toEqual([]);
  expect(named.flat().filter((name) => !FOUND.has(name))).toEqual([]);
});

test('it is said which share of the promises and of the faults that is', () => {
  const paragraphs = section(PAGE, 'Promises that seeds judge').trim().split('\n\n');
  const table = faultRows(1, 1);
  const inCells = table.filter(({ what, faults }) => DISTURBANCES[what] !== undefined || faults !== undefined);
  // Others are samples of lives in simulated worlds themselves.
  const ofServers = rowsOf(section(read(`${DOCS}/faults.md`), 'Samples')).filter(
    ([name = '']) => !/^(`test\/crash-points`|seeds of|faults of one cell)/.test(name),
  );
  // The first of those that are covered the same is one.
  const covered = ofServers.filter(([, , cover = '']) => /\bseeds\b|`test\/crash-points`|^the same$/.test(cover));
  const judged = new Set(JUDGED.flatMap(([cell]) => quoted(cell)));

  expect(numbersIn(paragraphs[0]!)).toEqual([PROMISED.length, judged.size]);
  expect(numbersIn(paragraphs.at(-1)!)).toEqual([table.length, inCells.length, ofServers.length, covered.length]);
});

test('it is said of each known defect whether it was found, was not, or was not tried', () => {
  const untried = quoted(DEFECTS[1]!.split('The other defects')[1]);
  const told = [...FOUND, ...NOT_FOUND, ...untried];

  expect(new Set(told)).toEqual(new Set(KNOWN_DEFECTS.map(({ name }) => name)));
  expect(told).toHaveLength(KNOWN_DEFECTS.length);
});

test('it is said how many requests are compared with those to kube-apiserver', () => {
  const compared = section(PAGE, 'Comparison with kube-apiserver').split('\n\n')[0]!;

  expect(numbersIn(compared)).toEqual([ROWS.length]);
});
