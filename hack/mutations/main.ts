import path from 'node:path';

import { presentCommit } from '../commit.ts';
import { flag, number, positionals, readOptions, text } from '../options.ts';
import { defaultBase, readChanges, type Base } from './changes.ts';
import { Compiler } from './compiler.ts';
import { EXPLAINED } from './explained.ts';
import { runHigherLevel } from './higher.ts';
import { MUTATIONS } from './list.ts';
import { levelOf, Pieces, type Mutation } from './mutation.ts';
import { sampleOf, shuffle } from './sample.ts';
import { Scratch } from './scratch.ts';
import { readSources, sourceFiles } from './sources.ts';
import { trialOf, trialsOf, type Trial } from './trial.ts';
import { readImports } from './tree/imports.ts';
import { runUnitLevel } from './unit.ts';
import { sumUp, type Verdict } from './verdict.ts';

/**
 * `npm run mutations [-- options] [FILE…]`: changes the source in small ways, in a copy, and says which changes no test notices. Exit
 * code 1 when a row of list/ survives unexplained, or too many others do. See docs/development/mutations.md.
 */
const root = path.resolve(import.meta.dirname, '../..');
/**
 * A lower share of mutants that tests notice fails a run, once it is no matter of which mutants were chosen: some always survive, because
 * nothing depends on them.
 */
const LOWEST_SCORE = 70;
/** How many test files of a source are run at most: those that are nearest to it. */
const TESTS_A_FILE = 32;
/**
 * The same of rows, whose `tests` name what notices them from further away, so that a sample finds what a run of all finds; and of others where time
 * is short. How many mutants can be tried in a second at best.
 */
const FEW_TESTS_A_FILE = 8;
const TRIALS_A_SECOND = 4;
/** Of how many files mutants are tried together: before the first of them it is measured what all their tests run. */
const FILES_A_PART = 40;
const FILES_A_PART_IN_TIME = 4;

const options = readOptions('Changes the source in small ways, in a copy, and says which changes no test notices.', {
  files: positionals('FILE', 'every mutant that the tool makes of these files; the rows of the list otherwise'),
  all: flag('run every mutant of all files, and every row of the unit level; takes a night'),
  changed: flag('run the mutants of changed functions'),
  base: text(
    'since when they have changed; otherwise since the main branch, on which it is the commit before, or 30 with --seconds',
  ),
  level: text('run only rows of this level: unit, integration or faults'),
  sample: number('number of rows of the unit level to sample'),
  seconds: number('end after this many seconds; the seed selects what is run'),
  seed: text('seed that selects a sample; the current commit by default'),
  match: text('run only rows whose function or reason contains this text', ''),
});

/** What is tried, part after part. */
function chosen(): readonly (readonly Trial[])[] {
  const { files, all, changed, sample, level, seconds } = options;
  const isTool = files.length > 0 || all || changed;
  const fromList = !isTool || all || sample !== undefined ? rows(all ? 'unit' : level) : [];
  const { newest, others } = isTool ? mutants() : NONE;
  if (seconds === undefined) return [fromList, ...parts([...newest, ...others], FILES_A_PART)];
  // Rows first: each of them must be noticed. Then the newest change, with half of the time at most, and then one file after the other.
  console.log(`# chosen by --seed ${seed()}`);
  const most = Math.max(0, seconds * TRIALS_A_SECOND - fromList.length);
  const ofNewest = shuffle(newest, seed());
  const first = ofNewest.slice(0, Math.round(most / 2));
  const rest = [...shuffled(others), ...ofNewest.slice(first.length)].slice(0, most - first.length);
  return [[...fromList, ...first], ...parts(rest, FILES_A_PART_IN_TIME)];
}

/** One file after the other, chosen by the seed: to measure what the tests of many files run takes more time than there is. */
function shuffled(trials: readonly Trial[]): readonly Trial[] {
  const ofFile = Map.groupBy(trials, ({ file }) => file);
  return shuffle([...ofFile.values()], seed()).flatMap((some) => shuffle(some, seed()));
}

function parts(trials: readonly Trial[], size: number): readonly (readonly Trial[])[] {
  const ofFile = [...Map.groupBy(trials, ({ file }) => file).values()];
  return Array.from({ length: Math.ceil(ofFile.length / size) }, (_, i) =>
    ofFile.slice(i * size, (i + 1) * size).flat(),
  );
}

function rows(level: string | undefined): readonly Trial[] {
  const { match, sample } = options;
  const isAsked = (one: Mutation): boolean => `${one.in} ${one.why}`.includes(match);
  const pieces = new Pieces(readSources(root));
  const asked = MUTATIONS.filter((one) => isAsked(one) && (level === undefined || levelOf(one) === level));
  if (sample === undefined) return asked.map((row) => trialOf(row, pieces));
  const sampled = asked.filter((one) => levelOf(one) === 'unit' && one.survives === undefined);
  return sampleOf(sampled, sample, seed()).map((row) => trialOf(row, pieces));
}

/** What the tool makes: of the newest change where it looks back further, and the others. */
interface Mutants {
  readonly newest: readonly Trial[];
  readonly others: readonly Trial[];
}

const NONE: Mutants = { newest: [], others: [] };

function mutants(): Mutants {
  const { files, all, base, seconds } = options;
  if (all) return { ...NONE, others: sourceFiles(root).flatMap((file) => trialsOf(root, file, EXPLAINED)) };
  if (files.length > 0) {
    const asked = files.map((file) => path.relative(root, path.resolve(root, file)));
    return { ...NONE, others: asked.flatMap((file) => trialsOf(root, file, EXPLAINED)) };
  }
  return changedMutants(base === undefined ? defaultBase(root, seconds !== undefined) : { commit: base });
}

function changedMutants({ commit: base, newest }: Base): Mutants {
  const all = mutantsSince(base);
  if (newest === undefined) return { ...NONE, others: all };
  const ofNewest = mutantsSince(newest);
  const keys = new Set(ofNewest.map(keyOf));
  return { newest: ofNewest, others: all.filter((trial) => !keys.has(keyOf(trial))) };
}

function mutantsSince(base: string): readonly Trial[] {
  const isSource = new Set(sourceFiles(root));
  const changes = [...readChanges(root, base)].filter(([file]) => isSource.has(file));
  console.log(`# functions that have changed since ${base.slice(0, 12)}, in ${changes.length} files`);
  return changes.flatMap(([file, lines]) =>
    trialsOf(root, file, EXPLAINED, ({ lines: [first, last] }) =>
      lines.some((changed) => changed.first <= last && changed.last >= first),
    ),
  );
}

function keyOf({ file, edit }: Trial): string {
  return `${file} ${edit.start} ${edit.end} ${edit.text}`;
}

function seed(): string {
  return options.seed ?? presentCommit(root);
}

function tell({ trial, kind, detail }: Verdict): void {
  // Of what the tool makes, the sum says how many.
  if ((kind === 'unreached' || kind === 'killed') && !trial.isRow && trial.survives === undefined) return;
  const isExplained = kind === 'survived' && trial.survives !== undefined;
  const why = isExplained ? ` [${trial.survives}]` : detail === '' ? '' : ` [${detail}]`;
  console.log(`${(isExplained ? 'explained' : kind).padEnd(9)} ${trial.file}: ${trial.title}${why}`);
}

async function main(): Promise<number> {
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort());
  const begunMs = performance.now();
  const { seconds } = options;
  const timeIsOver = seconds === undefined ? undefined : AbortSignal.timeout(seconds * 1_000);
  const all = chosen();
  const higher = all.flat().filter(({ above }) => above !== undefined);
  const unit = all.map((part) => part.filter(({ above }) => above === undefined)).filter((part) => part.length > 0);
  using scratch = new Scratch(root);
  const verdicts: Verdict[] = [];
  let refused = 0;
  if (unit.length > 0) {
    const imports = readImports(root);
    const candidates = ({ file, isRow, tests = [] }: Trial): readonly string[] => {
      const few = isRow || seconds !== undefined ? FEW_TESTS_A_FILE : TESTS_A_FILE;
      const near = imports.unitTestsOf(file);
      const named = near.filter((test) => tests.includes(path.basename(test)));
      return [...new Set([...named, ...near.slice(0, few)])];
    };
    const signal = AbortSignal.any([stopping.signal, ...(timeIsOver === undefined ? [] : [timeIsOver])]);
    using compiler = new Compiler(scratch.root);
    for (const part of unit) {
      const possible = part.filter(({ isRow, file, edit }) => isRow || signal.aborted || !compiler.refuses(file, edit));
      refused += part.length - possible.length;
      verdicts.push(...(await runUnitLevel(scratch.root, possible, candidates, signal, tell)));
    }
  }
  verdicts.push(...(await runHigherLevel(scratch.root, higher, stopping.signal, tell)));

  const { killed, explained, survived, unreached, untried, complaints, unknown, score, highest } = sumUp(verdicts);
  if (complaints.length + unknown.length > 0) console.log(`\n${[...unknown, ...complaints].join('\n')}`);
  const tried = verdicts.length - untried;
  console.log(
    `\n${tried} mutations in ${((performance.now() - begunMs) / 1_000).toFixed(0)} s: ${killed} killed (${score.toFixed(1)} % of those that tests run), ` +
      `${survived} survived, ${explained} explained, ${unreached} not run by unit tests, ${refused} refused by the compiler, ${verdicts.filter(({ kind }) => kind === 'broken').length} without a verdict, ` +
      `${complaints.length} to look at; ${untried} not tried`,
  );
  if (tried === 0 && untried > 0)
    console.log('Nothing was tried: the machine was too busy for the time that there was.');
  const isTooLow = highest < LOWEST_SCORE;
  if (isTooLow) console.log(`Fewer than ${LOWEST_SCORE} % are noticed, by chance less than once in 1,000: add tests.`);
  // A busy machine is no fault of the tests, which are run for themselves beside a sample.
  const isWhole = seconds === undefined && options.sample === undefined;
  return complaints.length > 0 || isTooLow || (isWhole && unknown.length > 0) ? 1 : 0;
}

process.exitCode = await main();
