import { describe, test } from '@jest/globals';

import { choiceOf, choose, isInSample, reportOf, type Table } from '../../hack/test/sample.ts';

/** The rows of a table that this run takes, as its variables ask. Prints which, so that a row that fails can be run again by its name. */
export function sampled<T>(table: Table<T>): readonly T[] {
  const choice = choiceOf(process.env);
  const chosen = choose(table, choice);
  process.stdout.write(`${reportOf(table, chosen, choice)}\n`);
  return chosen;
}

/** One of these seeds, `least` of them where more are asked for: of lives that are alike but for what their seed draws. */
export function sampledSeeds(name: string, seeds: readonly number[], least = 1): readonly number[] {
  return sampled({ name, rows: seeds, nameOf: String, kindsOf: () => ['seed'], least });
}

/** Adds a test, as `test` does. */
type AddTest = (name: string, fn: () => Promise<void>, timeoutMs?: number) => void;

/** Like `test`, for what shows in another form what other tests of its block show: one in so many is run, as the commit decides by its name. */
export function sampledTest(oneIn: number): AddTest {
  const add: AddTest = test;
  return (name, fn, timeoutMs) => {
    if (isTaken(name, oneIn)) add(name, fn, timeoutMs);
  };
}

/** Like `describe`, for a block that is run or left out as a whole, as `sampledTest` does: jest refuses the hooks of a block whose tests are all left out. */
export function sampledDescribe(oneIn: number): (name: string, block: () => void) => void {
  const add: (name: string, block: () => void) => void = describe;
  return (name, block) => {
    if (isTaken(name, oneIn)) add(name, block);
  };
}

function isTaken(name: string, oneIn: number): boolean {
  const is = isInSample(name, oneIn, choiceOf(process.env));
  if (is) process.stdout.write(`in the sample: ${name}\n`);
  return is;
}
