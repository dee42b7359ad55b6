import { describe, expect, test } from '@jest/globals';

import { levelOf, Pieces } from './mutation.ts';
import { sampleOf, shuffle } from './sample.ts';
import { apply } from './tree/edit.ts';
import type { Trial } from './trial.ts';
import { highestScore, sumUp, type Verdict } from './verdict.ts';

const FILE = 'pkg/a.ts';

describe('a mutation', () => {
  const SOURCES = [
    ['pkg/a.ts', 'export function one() {\n  if (a) b();\n  c();\n}\nexport class A {\n  #run() {\n    c();\n  }\n}\n'],
    ['pkg/b.ts', 'const LIMIT = 60;\nfunction two() {\n  f(\n    a$1,\n    b,\n  );\n  e();\n}\n'],
    ['pkg/c.ts', 'function two() {\n  d();\n  e();\n}\n'],
  ] as const;
  const pieces = new Pieces(SOURCES);

  function mutated(mutation: { in: string; from: string; to: string }): string {
    const { file, edit } = pieces.locate(mutation);
    return apply(new Map<string, string>(SOURCES).get(file) ?? '', edit);
  }

  test.each([
    { what: 'function', row: { in: 'one', from: 'c();', to: '' }, want: '  if (a) b();\n  \n}' },
    { what: 'method', row: { in: 'A.#run', from: 'c();', to: 'g();' }, want: '#run() {\n    g();' },
    { what: 'constant', row: { in: 'LIMIT', from: '60', to: '1' }, want: 'const LIMIT = 1;' },
    {
      what: 'function of two that has it',
      row: { in: 'two', from: 'd()', to: 'g()' },
      want: 'function two() {\n  g();',
    },
  ])('changes the one place in the $what that it names', ({ row, want }) => {
    expect(mutated(row)).toContain(want);
  });

  test('finds its text however the lines are broken, and takes it as it is', () => {
    expect(mutated({ in: 'two', from: 'a$1, b,', to: '$&' })).toContain('f(\n    $&\n  );');
  });

  test.each([
    { title: 'is gone', row: { in: 'one', from: 'x();', to: '' }, says: 'does not contain "x();" any more' },
    { title: 'is there twice', row: { in: 'two', from: 'e();', to: '' }, says: 'contains "e();" 2 times' },
    { title: 'stays as it is', row: { in: 'one', from: 'b();', to: 'b();' }, says: 'changes nothing' },
    {
      title: 'was in a function that is gone',
      row: { in: 'three', from: 'b', to: '' },
      says: 'nothing is called three',
    },
  ])('whose text $title is an error that says what to do', ({ row, says }) => {
    expect(() => mutated(row)).toThrow(says);
  });

  test.each([
    { above: undefined, level: 'unit' },
    { above: { file: 'test/integration/a.test.ts' }, level: 'integration' },
    { above: { file: 'test/faults/a.test.ts' }, level: 'faults' },
  ])('has the level of its test: $level', ({ above, level }) => {
    expect(levelOf(above === undefined ? {} : { above })).toBe(level);
  });
});

describe('a sample', () => {
  const items = Array.from({ length: 100 }, (_unused, i) => i);

  test('is the same for the same seed, another one for another', () => {
    expect(sampleOf(items, 10, 'a')).toEqual(sampleOf(items, 10, 'a'));
    expect(sampleOf(items, 10, 'a')).not.toEqual(sampleOf(items, 10, 'b'));
  });

  test('an order has every item once, and another place for it with another seed', () => {
    expect(shuffle(items, 'a').toSorted((a, b) => a - b)).toEqual(items);
    expect(shuffle(items, 'a')).not.toEqual(shuffle(items, 'b'));
  });

  test('reaches every row after some commits', () => {
    const commits = Array.from({ length: 100 }, (_unused, i) => sampleOf(items, 10, `commit ${i}`));

    expect(new Set(commits.flat()).size).toBe(100);
  });
});

describe('the verdicts', () => {
  const mutant: Trial = { file: FILE, edit: { start: 0, end: 1, text: '' }, title: 'launch, operand', isRow: false };
  const row: Trial = { ...mutant, title: 'All is lost.', isRow: true };
  const explained: Trial = { ...mutant, survives: 'It cannot be seen.' };
  const nothing = {
    killed: 0,
    explained: 0,
    survived: 0,
    unreached: 0,
    untried: 0,
    complaints: [],
    unknown: [],
    score: 100,
  };

  test.each<{ title: string; verdict: Verdict; want: object }>([
    { title: 'a mutant that is noticed', verdict: { trial: mutant, kind: 'killed', detail: 'x' }, want: { killed: 1 } },
    {
      title: 'a mutant that survives',
      verdict: { trial: mutant, kind: 'survived', detail: '' },
      want: { survived: 1, score: 0 },
    },
    {
      title: 'one that is explained',
      verdict: { trial: explained, kind: 'survived', detail: '' },
      want: { explained: 1 },
    },
    {
      title: 'a row that survives',
      verdict: { trial: row, kind: 'survived', detail: '' },
      want: { complaints: [expect.stringContaining('All is lost.')], score: 0 },
    },
    {
      title: 'a row that no test runs',
      verdict: { trial: row, kind: 'unreached', detail: '' },
      want: { unreached: 1, complaints: [expect.stringContaining('not run')] },
    },
    {
      title: 'an explained one that is noticed',
      verdict: { trial: explained, kind: 'killed', detail: 'x' },
      want: { killed: 1, complaints: [expect.stringContaining('take its explanation away')] },
    },
    {
      title: 'one whose tests fail without it',
      verdict: { trial: row, kind: 'broken', detail: 'no end' },
      want: { unknown: [expect.stringContaining('no end')] },
    },
    {
      title: 'one that the time was too short for',
      verdict: { trial: mutant, kind: 'untried', detail: '' },
      want: { untried: 1 },
    },
    {
      title: 'one that no test runs',
      verdict: { trial: mutant, kind: 'unreached', detail: '' },
      want: { unreached: 1 },
    },
  ])('count $title', ({ verdict, want }) => {
    expect(sumUp([verdict])).toMatchObject({ ...nothing, ...want });
  });

  test('give the share of those that tests run', () => {
    const kinds = ['killed', 'killed', 'killed', 'survived', 'unreached', 'untried'] as const;

    expect(sumUp(kinds.map((kind) => ({ trial: mutant, kind, detail: '' }))).score).toBe(75);
  });

  test.each([
    { killed: 0, tried: 0, highest: 100 },
    { killed: 4, tried: 12, highest: 73 },
    { killed: 3, tried: 12, highest: 67 },
    { killed: 112, tried: 166, highest: 77.5 },
    { killed: 95, tried: 166, highest: 68.4 },
    { killed: 20_700, tried: 30_000, highest: 69.8 },
    { killed: 166, tried: 166, highest: 100 },
  ])('of $tried mutants, $killed of them noticed, leave $highest % at most', ({ killed, tried, highest }) => {
    expect(highestScore(killed, tried)).toBeCloseTo(highest, 1);
  });
});
