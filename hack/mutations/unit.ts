import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

import type { Mutation } from './mutation.ts';
import type { Verdict } from './verdict.ts';

/** Mutants wait for nothing but each other: both cores of a small machine. */
const WORKERS = 2;
/** A test file takes seconds; a mutant that says nothing for longer loops forever. */
const SILENCE_MS = 120_000;
/** The project without any mutation: what fails there says nothing about mutants. */
const UNCHANGED = 'unchanged';

/** A line of reporter.js. */
interface FileResult {
  readonly project: string;
  readonly file: string;
  readonly passed: number;
  readonly failed: readonly string[];
  readonly error?: string;
}

/** What of jest.config.js is needed here. */
interface JestConfig {
  readonly projects: readonly { readonly displayName: string }[];
}

/**
 * Runs the unit tests of all mutations in one jest, each mutation as a project of its own, in the copy at `root`.
 */
export async function runUnitLevel(
  root: string,
  mutations: readonly Mutation[],
  signal: AbortSignal,
  tell: (verdict: Verdict) => void,
): Promise<readonly Verdict[]> {
  const config = path.join(root, 'mutations.config.json');
  writeFileSync(config, JSON.stringify(await configFor(root, mutations)));
  const ofProject = new Map<string, FileResult[]>();
  const results = await jest(root, config, signal, (result) => {
    const sofar = [...(ofProject.get(result.project) ?? []), result];
    ofProject.set(result.project, sofar);
    const mutation = mutations[indexOf(result.project)];
    if (mutation !== undefined && sofar.length === mutation.tests.length) tell(verdictOn(mutation, sofar));
  });

  // What fails without any mutation, or under this load, says nothing about mutants.
  const failing = new Map(
    results
      .filter(({ project, failed, error }) => project === UNCHANGED && (failed.length > 0 || error !== undefined))
      .map(({ file, failed, error }) => [path.relative(root, file), failed[0] ?? error ?? '']),
  );
  return mutations.map((mutation, i) => {
    const unsound = mutation.tests.find((test) => failing.has(test));
    if (unsound === undefined) return verdictOn(mutation, ofProject.get(nameOf(i)) ?? []);
    const detail = `${unsound} fails without any mutation: ${failing.get(unsound) ?? ''}`;
    return { mutation, kind: 'broken', detail };
  });
}

async function configFor(root: string, mutations: readonly Mutation[]): Promise<unknown> {
  const url = pathToFileURL(path.join(root, 'jest.config.js')).href;
  const { default: jestConfig } = (await import(url)) as { default: JestConfig };
  const unit = jestConfig.projects.find(({ displayName }) => displayName === 'unit');
  const project = (displayName: string, tests: readonly string[], mutation?: Mutation): unknown => ({
    ...unit,
    rootDir: root,
    displayName,
    cacheDirectory: path.join(root, '.jest'),
    testEnvironment: path.join(root, 'hack/mutations/environment.js'),
    roots: [...new Set(tests.map((test) => path.join(root, path.dirname(test))))],
    testMatch: tests.map((test) => path.join(root, test)),
    transform: { [String.raw`^.+\.ts$`]: [path.join(root, 'hack/mutations/transform.js'), { mutation }] },
  });
  const all = [...new Set(mutations.flatMap(({ tests }) => tests))];
  return {
    rootDir: root,
    workerIdleMemoryLimit: '512MB',
    reporters: [path.join(root, 'hack/mutations/reporter.js')],
    projects: [project(UNCHANGED, all), ...mutations.map((one, i) => project(nameOf(i), one.tests, one))],
  };
}

function nameOf(i: number): string {
  return `mutation-${i}`;
}

/** NaN for the project without a mutation. */
function indexOf(project: string): number {
  return Number(project.replace('mutation-', ''));
}

function verdictOn(mutation: Mutation, results: readonly FileResult[]): Verdict {
  const test = results.flatMap(({ failed }) => failed)[0];
  if (test !== undefined) return { mutation, kind: 'killed', detail: test };
  const error = results.find((result) => result.error !== undefined)?.error;
  if (error !== undefined) return { mutation, kind: 'broken', detail: error };
  const isWhole = results.length === mutation.tests.length && results.every(({ passed }) => passed > 0);
  if (isWhole) return { mutation, kind: 'survived', detail: '' };
  return { mutation, kind: 'broken', detail: 'its tests had no end: choose a change that does not loop forever' };
}

/** The results as far as they have come when jest ends, or is ended because it says nothing any more. */
function jest(
  root: string,
  config: string,
  signal: AbortSignal,
  told: (result: FileResult) => void,
): Promise<readonly FileResult[]> {
  const results: FileResult[] = [];
  const argv = [
    '--experimental-vm-modules',
    '--disable-warning=ExperimentalWarning',
    path.join(root, 'node_modules/jest/bin/jest.js'),
    '--config',
    config,
    `--maxWorkers=${WORKERS}`,
  ];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, argv, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    // With its workers: a mutant that loops forever outlives the jest that started it.
    const end = (): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // the whole group has ended by itself
      }
    };
    signal.addEventListener('abort', end, { once: true });
    let silence = setTimeout(end, SILENCE_MS);
    let said = '';
    child.stderr.on('data', (text) => (said += String(text)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (!line.startsWith('{"project"')) return;
      clearTimeout(silence);
      silence = setTimeout(end, SILENCE_MS);
      const result = JSON.parse(line) as FileResult;
      results.push(result);
      told(result);
    });
    child.on('error', reject);
    child.on('close', () => {
      clearTimeout(silence);
      end();
      if (results.length > 0) resolve(results);
      else reject(new Error(`jest ran no test: ${said.slice(0, 2_000)}`));
    });
  });
}
