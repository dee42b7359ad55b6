import { spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

import type { Edit } from './tree/edit.ts';

/** Mutants wait for nothing but each other: both cores of a small machine. */
const WORKERS = 2;
/** A test file takes seconds; one that says nothing for longer has no end. */
const SILENCE_MS = 60_000;

/** Test files that are run as a project of their own, with the same change in the source. */
export interface Project {
  readonly name: string;
  /** From the root of the checkout. */
  readonly tests: readonly string[];
  readonly change?: { readonly file: string; readonly edit: Edit };
  /** Options of environment.js. */
  readonly environment: Readonly<Record<string, unknown>>;
}

/** How a test file ended. */
export interface FileResult {
  readonly project: string;
  /** From the root of the checkout. */
  readonly test: string;
  readonly passed: number;
  readonly failed: readonly string[];
  readonly error?: string;
}

/** What came of a jest. */
interface Results {
  readonly results: readonly FileResult[];
  /** Projects whose tests had begun and not ended when jest was ended, because nothing was heard of it any more. */
  readonly endless: ReadonlySet<string>;
}

/** A line of reporter.js. */
interface Line {
  readonly project: string;
  readonly file: string;
  readonly result?: Pick<FileResult, 'passed' | 'failed' | 'error'>;
}

/** What of jest.config.js is needed here. */
interface JestConfig {
  readonly projects: readonly { readonly displayName: string }[];
}

/** Runs projects of the unit level in one jest, in the copy at `root`. What was not run has no result. */
export async function runProjects(
  root: string,
  projects: readonly Project[],
  signal: AbortSignal,
  tell: (result: FileResult) => void = () => undefined,
): Promise<Results> {
  if (signal.aborted || projects.every(({ tests }) => tests.length === 0)) return { results: [], endless: new Set() };
  const config = path.join(mkdtempSync(path.join(root, '.jest-')), 'config.json');
  writeFileSync(config, JSON.stringify(await configFor(root, projects)));
  return jest(root, config, signal, tell);
}

async function configFor(root: string, projects: readonly Project[]): Promise<unknown> {
  const url = pathToFileURL(path.join(root, 'jest.config.js')).href;
  const { default: jestConfig } = (await import(url)) as { default: JestConfig };
  const unit = jestConfig.projects.find(({ displayName }) => displayName === 'unit');
  return {
    rootDir: root,
    workerIdleMemoryLimit: '512MB',
    reporters: [path.join(root, 'hack/mutations/reporter.js')],
    testSequencer: path.join(root, 'hack/mutations/sequencer.js'),
    projects: projects.map(({ name, tests, change, environment }) => ({
      ...unit,
      rootDir: root,
      displayName: name,
      cacheDirectory: path.join(root, '.jest'),
      testEnvironment: path.join(root, 'hack/mutations/environment.js'),
      testEnvironmentOptions: environment,
      roots: [...new Set(tests.map((test) => path.join(root, path.dirname(test))))],
      testMatch: tests.map((test) => path.join(root, test)),
      transform: { [String.raw`^.+\.ts$`]: [path.join(root, 'hack/mutations/transform.js'), { change }] },
    })),
  };
}

/** The results as far as they have come when jest ends, or is ended because it says nothing any more. */
function jest(root: string, config: string, signal: AbortSignal, tell: (result: FileResult) => void): Promise<Results> {
  const results: FileResult[] = [];
  const begun = new Map<string, string>();
  const endless = new Set<string>();
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
    const endSilence = (): void => {
      for (const project of begun.values()) endless.add(project);
      end();
    };
    signal.addEventListener('abort', end, { once: true });
    let silence = setTimeout(endSilence, SILENCE_MS);
    let said = '';
    child.stderr.on('data', (text) => (said += String(text)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (!line.startsWith('{"project"')) return;
      clearTimeout(silence);
      silence = setTimeout(endSilence, SILENCE_MS);
      const { project, file, result } = JSON.parse(line) as Line;
      const key = `${project} ${file}`;
      if (result === undefined) {
        begun.set(key, project);
        return;
      }
      begun.delete(key);
      const ended = { project, test: path.relative(root, file), ...result };
      results.push(ended);
      tell(ended);
    });
    child.on('error', reject);
    child.on('close', () => {
      clearTimeout(silence);
      signal.removeEventListener('abort', end);
      end();
      if (results.length > 0 || endless.size > 0 || signal.aborted) resolve({ results, endless });
      else reject(new Error(`jest ran no test: ${said.slice(0, 2_000)}`));
    });
  });
}
