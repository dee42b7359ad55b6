import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { presentCommit } from '../commit.ts';
import { chromium, NoChromiumError } from '../chromium/chromium.ts';
import { NoOpenStackError, openStackPackages } from '../openstack/packages.ts';
import { PROGRAMS_VARIABLE } from '../ironcore/programs.ts';
import { PROVIDERS_VARIABLE } from '../providers/programs.ts';
import {
  type Level,
  LEVELS,
  ONLY_WHEN_NAMED,
  optionalProgramsOf,
  type Run,
  runsAnyOf,
  runsOf,
  WITH_CHROMIUM,
  WITH_IRONCORE,
  WITH_MCM_PROVIDERS,
} from './levels.ts';
import { choiceOf, SAMPLE_VARIABLE } from './sample.ts';
import { bundlePrograms } from './programs.ts';
import { sumUp } from './summary.ts';
import { waitingFor } from './turns.ts';

/**
 * The test command: `main.ts [level] [--all-files] [--all-rows] [jest arguments…]`. Builds the control plane when a level needs it, runs the levels in two
 * jests side by side, and prints the sum as the last line. Exit code 1 when anything failed or nothing ran. Of tables that something
 * cheaper explores, the commit decides which rows are run, and without a level also which files: see sample.ts and turns.ts.
 */
const root = path.resolve(import.meta.dirname, '../..');

/**
 * Servers and programs of tests live for minutes in much memory: their garbage is collected less often, for a tenth less CPU time. And each
 * has one processor, since several files run side by side anyway: passing work from one to the other takes a quarter of etcd's CPU time.
 */
const FRUGAL = { GOGC: '400', GOMAXPROCS: '1' };

/** Takes every row of every table, and every file. */
const ALL_ROWS = '--all-rows';
/** Takes every file, with a sample of the rows. */
const ALL_FILES = '--all-files';

async function main(argv: readonly string[]): Promise<number> {
  const named = LEVELS.filter((level) => level === argv[0]);
  const levels = await possibleOf(named.length === 0 ? LEVELS : named);
  if (levels.length === 0) return 0;
  const runs = runsOf(levels);
  const jestArguments = argv.slice(named.length).filter((argument) => argument !== ALL_ROWS && argument !== ALL_FILES);
  const withoutChromium = await whyNoChromium(levels, jestArguments);
  if (withoutChromium !== undefined && process.env['CI'] !== undefined) {
    console.error(`The tests of the status page cannot run: ${withoutChromium}.`);
    return 1;
  }
  const sample = argv.includes(ALL_ROWS) ? 'all' : (process.env[SAMPLE_VARIABLE] ?? presentCommit(root));
  const takesTurns =
    named.length === 0 && !argv.includes(ALL_FILES) && jestArguments.every((argument) => argument.startsWith('-'));
  const waiting = takesTurns ? waitingFor(choiceOf({ ...process.env, [SAMPLE_VARIABLE]: sample })) : [];
  if (waiting.length > 0) {
    console.log(
      `\n# without ${waiting.length} files that take turns; ${ALL_FILES}, or the name of their level, takes them:`,
    );
    for (const file of waiting) console.log(`  ${file}`);
  }
  const leftOut = [
    ...waiting,
    ...(withoutChromium === undefined ? [] : WITH_CHROMIUM),
    ...(named.length === 0 ? ONLY_WHEN_NAMED : []),
    ...(process.env[PROGRAMS_VARIABLE] === undefined ? WITH_IRONCORE : []),
    ...(process.env[PROVIDERS_VARIABLE] === undefined
      ? Object.values(WITH_MCM_PROVIDERS).flatMap(({ files }) => files)
      : []),
  ].join(' ');

  const directory = mkdtempSync(path.join(tmpdir(), 'machinist-tests-'));
  const summary = path.join(directory, 'summary');
  const programs = path.join(directory, 'programs');
  try {
    const codes = await Promise.all(
      runs.map(async (one) => {
        if (one.needsControlPlane) {
          const optional = optionalProgramsOf(levels, jestArguments);
          const code = await run([path.join(root, 'hack/control-plane/build.ts'), ...optional], {});
          if (code !== 0) return code;
          await bundlePrograms(programs);
        }
        return await runLevels(one, jestArguments, {
          MACHINIST_TEST_SUMMARY: summary,
          MACHINIST_TEST_PROGRAMS: programs,
          MACHINIST_TEST_LEFT_OUT: leftOut,
          [SAMPLE_VARIABLE]: sample,
        });
      }),
    );
    const total = sumUp(readFileSync(summary, { encoding: 'utf8', flag: 'a+' }));
    if (withoutChromium !== undefined) console.log(`\nThe tests of the status page did not run: ${withoutChromium}.`);
    console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
    return codes.every((code) => code === 0) && total.passed > 0 ? 0 : 1;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** The level with a real OpenStack is left out, with a sentence, where its services cannot be had. */
async function possibleOf(levels: readonly Level[]): Promise<readonly Level[]> {
  if (!levels.includes('openstack')) return levels;
  try {
    await openStackPackages(console.log);
    return levels;
  } catch (err) {
    if (!(err instanceof NoOpenStackError)) throw err;
    console.log(`\nThe tests with a real OpenStack are skipped: ${err.message}.`);
    return levels.filter((level) => level !== 'openstack');
  }
}

/** Why there is no Chromium for the tests that need one; undefined when there is, or none of them run. */
async function whyNoChromium(levels: readonly Level[], jestArguments: readonly string[]): Promise<string | undefined> {
  if (!runsAnyOf(WITH_CHROMIUM, levels, jestArguments)) return undefined;
  try {
    await chromium(console.log);
    return undefined;
  } catch (err) {
    if (!(err instanceof NoChromiumError)) throw err;
    return err.message;
  }
}

async function runLevels(
  { levels, workers }: Run,
  jestArguments: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<number> {
  console.log(`\n# ${levels.join(', ')} tests`);
  return run(
    [
      '--experimental-vm-modules',
      '--disable-warning=ExperimentalWarning',
      path.join(root, 'node_modules/jest/bin/jest.js'),
      '--selectProjects',
      ...levels,
      '--passWithNoTests',
      `--maxWorkers=${workers}`,
      ...jestArguments,
    ],
    { ...FRUGAL, ...env },
  );
}

function run(argv: readonly string[], env: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, argv, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } });
    child.on('error', reject);
    child.on('exit', (code) => resolve(code ?? 1));
  });
}

process.exitCode = await main(process.argv.slice(2));
