import type { Trial } from './trial.ts';

/**
 * What became of a trial. killed: a test failed. survived: all passed. unreached: no unit test runs that code. untried: the time was over.
 * broken: nothing is known, because its tests could not be run.
 */
export interface Verdict {
  readonly trial: Trial;
  readonly kind: 'killed' | 'survived' | 'unreached' | 'untried' | 'broken';
  /** The test that noticed it, or why nothing is known. */
  readonly detail: string;
}

/** What all verdicts came to. */
export interface Summary {
  readonly killed: number;
  /** Survivors that are explained. */
  readonly explained: number;
  /** Mutants of the tool that survived without an explanation. */
  readonly survived: number;
  readonly unreached: number;
  readonly untried: number;
  /** What somebody has to do about the list or the tests, one line each; none: all is well. */
  readonly complaints: readonly string[];
  /** Of which nothing is known, one line each: it says nothing about the tests. */
  readonly unknown: readonly string[];
  /** Share of the mutants that tests run and notice, in per cent; 100 when there is none. */
  readonly score: number;
  /** What the score of all mutants can be at most, of which these are a sample. */
  readonly highest: number;
}

/** Sums up. A row that survives is a complaint; so is a trial that is noticed although it is explained why it cannot be. */
export function sumUp(verdicts: readonly Verdict[]): Summary {
  const count = (kind: Verdict['kind']): number => verdicts.filter((verdict) => verdict.kind === kind).length;
  const isLive = ({ kind, trial }: Verdict): boolean => kind === 'survived' && trial.survives === undefined;
  const killed = count('killed');
  const survived = verdicts.filter((verdict) => isLive(verdict) && !verdict.trial.isRow).length;
  const rows = verdicts.filter((verdict) => isLive(verdict) && verdict.trial.isRow).length;
  const tried = killed + survived + rows;
  return {
    killed,
    explained: count('survived') - survived - rows,
    survived,
    unreached: count('unreached'),
    untried: count('untried'),
    complaints: verdicts.flatMap(complaintAbout),
    unknown: unknownOf(verdicts.filter(({ kind }) => kind === 'broken')),
    score: tried === 0 ? 100 : (100 * killed) / tried,
    highest: highestScore(killed, tried),
  };
}

/** What is the matter, once for all that it concerns. */
function unknownOf(broken: readonly Verdict[]): readonly string[] {
  const byReason = Map.groupBy(broken, ({ detail }) => detail);
  return [...byReason].map(([detail, [first, ...others]]) => {
    const more = others.length === 0 ? '' : ` and ${others.length} more`;
    return `no verdict: ${first?.trial.file}: ${first?.trial.title}${more} (${detail})`;
  });
}

function complaintAbout({ trial, kind, detail }: Verdict): readonly string[] {
  const { file, title, isRow, survives } = trial;
  if (kind === 'killed' && survives !== undefined) {
    return [`noticed by now, take its explanation away: ${file}: ${title} (${detail})`];
  }
  if (!isRow || survives !== undefined) return [];
  if (kind === 'survived') return [`survived: ${file}: ${title} No test fails.`];
  return kind === 'unreached' ? [`not run by any unit test: ${file}: ${title}`] : [];
}

/** How many standard deviations a sample is off by chance once in 1,000. */
const Z = 3.09;

/**
 * The highest share of all mutants, in per cent, that tests can notice if of `tried` ones they noticed `killed`: with more, a sample would
 * have as few by chance less than once in 1,000 (upper bound of Wilson's score interval). 100 when none was tried.
 */
export function highestScore(killed: number, tried: number): number {
  if (tried === 0) return 100;
  const share = killed / tried;
  const spread = Z * Math.sqrt((share * (1 - share)) / tried + (Z * Z) / (4 * tried * tried));
  return (100 * (share + (Z * Z) / (2 * tried) + spread)) / (1 + (Z * Z) / tried);
}
