import { choiceOf, choose, reportOf, type Table } from '../../hack/test/sample.ts';

/** The rows of a table that this run takes, as its variables ask. Prints which, so that a row that fails can be run again by its name. */
export function sampled<T>(table: Table<T>): readonly T[] {
  const choice = choiceOf(process.env);
  const chosen = choose(table, choice);
  process.stdout.write(`${reportOf(table, chosen, choice)}\n`);
  return chosen;
}
