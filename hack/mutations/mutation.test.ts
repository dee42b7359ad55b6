import { describe, expect, test } from '@jest/globals';

import { levelOf, mutate, type Mutation } from './mutation.ts';
import { sampleOf } from './sample.ts';
import { sumUp, type Verdict } from './verdict.ts';

const FILE = 'pkg/a.ts';

describe('a mutation', () => {
  test('changes the one place that it names', () => {
    expect(mutate('if (a) b();\nc();\n', { file: FILE, from: 'if (a) b();', to: 'b();' })).toBe('b();\nc();\n');
  });

  test('finds its text however the lines are broken, and takes it as it is', () => {
    expect(mutate('f(\n  a$1,\n  b,\n);', { file: FILE, from: 'a$1, b,', to: '$&' })).toBe('f(\n  $&\n);');
  });

  test.each([
    { title: 'is gone', source: 'c();', from: 'b();', to: '', says: 'does not contain "b();" any more' },
    { title: 'is there twice', source: 'b(); b();', from: 'b();', to: '', says: 'contains "b();" 2 times' },
    { title: 'stays as it is', source: 'b();', from: 'b();', to: 'b();', says: 'changes nothing' },
  ])('whose text $title is an error that says what to do', ({ source, from, to, says }) => {
    expect(() => mutate(source, { file: FILE, from, to })).toThrow(says);
  });

  test.each([
    { tests: ['pkg/a.test.ts'], level: 'unit' },
    { tests: ['test/integration/a.test.ts'], level: 'integration' },
    { tests: ['test/faults/a.test.ts'], level: 'faults' },
  ])('has the level of its tests: $level', ({ tests, level }) => {
    expect(levelOf({ tests })).toBe(level);
  });
});

describe('a sample', () => {
  const items = Array.from({ length: 100 }, (_unused, i) => i);

  test('is the same for the same seed, another one for another', () => {
    expect(sampleOf(items, 10, 'a')).toEqual(sampleOf(items, 10, 'a'));
    expect(sampleOf(items, 10, 'a')).not.toEqual(sampleOf(items, 10, 'b'));
  });

  test('reaches every row after some commits', () => {
    const commits = Array.from({ length: 100 }, (_unused, i) => sampleOf(items, 10, `commit ${i}`));

    expect(new Set(commits.flat()).size).toBe(100);
  });
});

describe('the verdicts', () => {
  const row: Mutation = { file: FILE, from: 'a', to: 'b', why: 'All is lost.', tests: ['pkg/a.test.ts'] };
  const explained: Mutation = { ...row, survives: 'It cannot be seen.' };

  test.each<{ verdict: Verdict; want: object }>([
    {
      verdict: { mutation: row, kind: 'killed', detail: 'x' },
      want: { killed: 1, explained: 0, complaints: [], unknown: [] },
    },
    {
      verdict: { mutation: explained, kind: 'survived', detail: '' },
      want: { killed: 0, explained: 1, complaints: [], unknown: [] },
    },
    {
      verdict: { mutation: row, kind: 'survived', detail: '' },
      want: { killed: 0, explained: 0, complaints: [expect.stringContaining('All is lost.')], unknown: [] },
    },
    {
      verdict: { mutation: explained, kind: 'killed', detail: 'x' },
      want: { killed: 1, explained: 0, complaints: [expect.stringContaining('take its "survives" away')], unknown: [] },
    },
    {
      verdict: { mutation: row, kind: 'broken', detail: 'no end' },
      want: { killed: 0, explained: 0, complaints: [], unknown: [expect.stringContaining('no end')] },
    },
  ])('come to $want', ({ verdict, want }) => {
    expect(sumUp([verdict])).toEqual(want);
  });
});
