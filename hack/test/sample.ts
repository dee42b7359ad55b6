import { createHash } from 'node:crypto';

import { shuffle } from '../mutations/sample.ts';

/** `all`, or what decides which rows a run takes; the test command makes it the commit. */
export const SAMPLE_VARIABLE = 'MACHINIST_TEST_SAMPLE';
/** A regular expression on the names of rows: those are taken, and no others. */
const ROWS_VARIABLE = 'MACHINIST_TEST_ROWS';
/** The seed of a test that is run without the test command. */
const NO_SEED = 'none';

/** A table of which a run takes a part, because something cheaper explores the whole. */
export interface Table<T> {
  readonly name: string;
  readonly rows: readonly T[];
  /** Tells a row from all others. */
  readonly nameOf: (row: T) => string;
  /** What a row is an example of. A sample has at least one of each; a row that nothing else explores is a kind of its own. */
  readonly kindsOf: (row: T) => readonly string[];
  /** Rows of a sample at least, whatever their kinds. */
  readonly least?: number;
  /** Rows that are in no sample, because each takes minutes. */
  readonly takesMinutes?: (row: T) => boolean;
}

/** Which rows of all tables a run takes. */
export type Choice =
  | { readonly how: 'all' }
  | { readonly how: 'matching'; readonly pattern: RegExp }
  | { readonly how: 'sample'; readonly seed: string };

/** What the variables of a process ask for. Long forms take all rows. */
export function choiceOf(env: Readonly<Record<string, string | undefined>>): Choice {
  const pattern = env[ROWS_VARIABLE];
  if (pattern !== undefined) return { how: 'matching', pattern: new RegExp(pattern) };
  const seed = env[SAMPLE_VARIABLE] ?? NO_SEED;
  return seed === 'all' || env['MACHINIST_FAULTS'] === 'long' ? { how: 'all' } : { how: 'sample', seed };
}

/** The chosen rows, in the order of the table. */
export function choose<T>(table: Table<T>, choice: Choice): readonly T[] {
  const { name, rows, nameOf, kindsOf, least = 0, takesMinutes = () => false } = table;
  if (choice.how === 'all') return rows;
  if (choice.how === 'matching') return rows.filter((row) => choice.pattern.test(nameOf(row)));
  const seen = new Set<string>();
  const [needed, others]: [T[], T[]] = [[], []];
  // Any row may be the first of its kind, so that each has its turn.
  const quick = rows.filter((row) => !takesMinutes(row));
  for (const row of shuffle(quick, `${choice.seed}/${name}`)) {
    const isNew = kindsOf(row).some((kind) => !seen.has(kind));
    for (const kind of kindsOf(row)) seen.add(kind);
    (isNew ? needed : others).push(row);
  }
  const chosen = new Set([...needed, ...others.slice(0, Math.max(0, least - needed.length))]);
  return rows.filter((row) => chosen.has(row));
}

/** Which rows were chosen, and how they are run again, together or one of them. */
export function reportOf<T>({ name, rows, nameOf }: Table<T>, chosen: readonly T[], choice: Choice): string {
  const count = `${name}: ${chosen.length} of ${rows.length} rows`;
  if (choice.how === 'all') return count;
  const names = chosen.map((row) => `  ${nameOf(row)}`);
  const again =
    choice.how === 'sample'
      ? `, ${SAMPLE_VARIABLE}=${choice.seed}; ${SAMPLE_VARIABLE}=all takes every row, ${ROWS_VARIABLE}='<pattern>' those whose names match`
      : ` match ${choice.pattern.source}`;
  return [`${count}${again}`, ...names].join('\n');
}

/** Whether something that nobody lists with others is in a sample of one in `oneIn`. */
export function isInSample(name: string, oneIn: number, choice: Choice): boolean {
  if (choice.how === 'all') return true;
  if (choice.how === 'matching') return choice.pattern.test(name);
  return createHash('sha256').update(`${choice.seed}/${name}`).digest().readUInt32BE() % oneIn === 0;
}
