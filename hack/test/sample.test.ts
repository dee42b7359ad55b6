import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { choiceOf, choose, isInSample, reportOf, type Table } from './sample.ts';

interface Row {
  readonly name: string;
  readonly kinds: readonly string[];
}

const TABLES = fc
  .array(fc.subarray(['a', 'b', 'c', 'd', 'e'], { minLength: 1 }), { minLength: 1, maxLength: 30 })
  .map((kinds) => tableOf(kinds));
const SEEDS = fc.nat().map((n) => n.toString(16));

function tableOf(kinds: readonly (readonly string[])[], least = 0): Table<Row> {
  const rows = kinds.map((some, i) => ({ name: `row ${i}`, kinds: some }));
  return { name: 'table', rows, nameOf: (row) => row.name, kindsOf: (row) => row.kinds, least };
}

function kindsOf(rows: readonly Row[]): Set<string> {
  return new Set(rows.flatMap(({ kinds }) => kinds));
}

describe('a sample of a table', () => {
  test('is the same for the same seed, in the order of the table, and has each kind', () => {
    fc.assert(
      fc.property(TABLES, SEEDS, (table, seed) => {
        const chosen = choose(table, { how: 'sample', seed });

        expect(choose(table, { how: 'sample', seed })).toEqual(chosen);
        expect(table.rows.filter((row) => chosen.includes(row))).toEqual(chosen);
        expect(kindsOf(chosen)).toEqual(kindsOf(table.rows));
      }),
    );
  });

  test('has no row without need', () => {
    fc.assert(
      fc.property(TABLES, SEEDS, (table, seed) => {
        expect(choose(table, { how: 'sample', seed }).length).toBeLessThanOrEqual(kindsOf(table.rows).size);
      }),
    );
  });

  test('has as many rows as it is to have at least', () => {
    fc.assert(
      fc.property(SEEDS, fc.nat({ max: 20 }), (seed, least) => {
        const table = tableOf(
          Array.from({ length: 12 }, () => ['a']),
          least,
        );

        expect(choose(table, { how: 'sample', seed })).toHaveLength(Math.min(12, Math.max(1, least)));
      }),
    );
  });

  test('has no row that takes minutes; all rows and those whose names match have', () => {
    const table = { ...tableOf([['a'], ['a'], ['b']], 3), takesMinutes: ({ name }: Row) => name === 'row 1' };

    expect(choose(table, { how: 'sample', seed: 'x' }).map(({ name }) => name)).toEqual(['row 0', 'row 2']);
    expect(choose(table, { how: 'all' })).toHaveLength(3);
    expect(choose(table, { how: 'matching', pattern: /1/ })).toHaveLength(1);
  });

  test('has each row with some commit', () => {
    fc.assert(
      fc.property(TABLES, fc.nat(), (table, first) => {
        const commits = Array.from({ length: 40 * table.rows.length }, (_, i) => (first + i).toString(16));
        const chosen = new Set(commits.flatMap((seed) => choose(table, { how: 'sample', seed })));

        expect(chosen).toEqual(new Set(table.rows));
      }),
      { numRuns: 20 },
    );
  });

  test('of one table says nothing about that of another with the same seed', () => {
    const table = tableOf(Array.from({ length: 12 }, () => ['a']));
    const rows = Array.from(
      { length: 12 },
      (_, i) => choose({ ...table, name: `table ${i}` }, { how: 'sample', seed: 'abc' })[0],
    );

    expect(new Set(rows).size).toBeGreaterThan(1);
  });
});

describe('what a run takes', () => {
  const table = tableOf([['a'], ['a'], ['b']]);

  test.each([
    { env: {}, choice: { how: 'sample', seed: 'none' } },
    { env: { MACHINIST_TEST_SAMPLE: '1a2b3c4' }, choice: { how: 'sample', seed: '1a2b3c4' } },
    { env: { MACHINIST_TEST_SAMPLE: 'all' }, choice: { how: 'all' } },
    { env: { MACHINIST_FAULTS: 'long' }, choice: { how: 'all' } },
    {
      env: { MACHINIST_TEST_SAMPLE: 'all', MACHINIST_TEST_ROWS: 'w 1$' },
      choice: { how: 'matching', pattern: /w 1$/ },
    },
  ])('is $choice for $env', ({ env, choice }) => {
    expect(choiceOf(env)).toEqual(choice);
  });

  test('are all rows, or those whose names match', () => {
    expect(choose(table, { how: 'all' })).toEqual(table.rows);
    expect(choose(table, { how: 'matching', pattern: /w [12]$/ })).toEqual(table.rows.slice(1));
  });

  test('is printed with the names of its rows, and how to run them again', () => {
    const sample = { how: 'sample', seed: '1a2b3c4' } as const;
    const [chosen, matching] = [table.rows.slice(1), { how: 'matching', pattern: /w/ } as const];

    expect(reportOf(table, chosen, sample)).toMatch(
      /^table: 2 of 3 rows, MACHINIST_TEST_SAMPLE=1a2b3c4; .*\n {2}row 1\n {2}row 2$/,
    );
    expect(reportOf(table, chosen, matching)).toBe('table: 2 of 3 rows match w\n  row 1\n  row 2');
    expect(reportOf(table, table.rows, { how: 'all' })).toBe('table: 3 of 3 rows');
  });
});

describe('a name without a table', () => {
  test('is in a sample of one in so many, in turns, and always in the same ones', () => {
    const samplesOf = (name: string): boolean[] =>
      Array.from({ length: 800 }, (_, i) => isInSample(name, 8, { how: 'sample', seed: String(i) }));

    const [a, b] = [samplesOf('a'), samplesOf('b')];

    expect(samplesOf('a')).toEqual(a);
    expect(b).not.toEqual(a);
    for (const samples of [a, b]) {
      const times = samples.filter(Boolean).length;
      expect(times).toBeGreaterThan(50);
      expect(times).toBeLessThan(150);
    }
  });

  test('is among all rows, and among those that match', () => {
    expect(isInSample('name', 8, { how: 'all' })).toBe(true);
    expect(isInSample('name', 8, { how: 'matching', pattern: /am/ })).toBe(true);
    expect(isInSample('name', 8, { how: 'matching', pattern: /^$/ })).toBe(false);
  });
});
