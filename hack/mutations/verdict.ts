import type { Mutation } from './mutation.ts';

/**
 * What became of a mutation. killed: a test failed. survived: all passed. broken: nothing is known, because its tests could not
 * be run, or had no end.
 */
export interface Verdict {
  readonly mutation: Mutation;
  readonly kind: 'killed' | 'survived' | 'broken';
  /** The test that noticed it, or why nothing is known. */
  readonly detail: string;
}

/** What all verdicts came to. */
export interface Summary {
  readonly killed: number;
  /** Survivors that the list explains. */
  readonly explained: number;
  /** What somebody has to do about the list or the tests, one line each; none: all is well. */
  readonly complaints: readonly string[];
  /** Of which nothing is known, one line each: it says nothing about the tests. */
  readonly unknown: readonly string[];
}

/** Sums up. A mutation that is noticed although the list explains why it cannot be is a complaint too: the list stays true. */
export function sumUp(verdicts: readonly Verdict[]): Summary {
  const complaints = verdicts.flatMap(({ mutation, kind, detail }) => {
    const what = `${mutation.file}: ${mutation.why}`;
    const isExplained = mutation.survives !== undefined;
    if (kind === 'survived' && !isExplained)
      return [`survived: ${what} No test of ${mutation.tests.join(', ')} fails.`];
    return kind === 'killed' && isExplained ? [`noticed by now, take its "survives" away: ${what} (${detail})`] : [];
  });
  return {
    killed: verdicts.filter(({ kind }) => kind === 'killed').length,
    explained: verdicts.filter(({ kind, mutation }) => kind === 'survived' && mutation.survives !== undefined).length,
    complaints,
    unknown: verdicts
      .filter(({ kind }) => kind === 'broken')
      .map(({ mutation, detail }) => `no verdict: ${mutation.file}: ${mutation.why} (${detail})`),
  };
}
