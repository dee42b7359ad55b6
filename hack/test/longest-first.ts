import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { cacheDirectory } from '../control-plane/user-directories.ts';
import { LEVELS } from './levels.ts';

/** A test file, as jest has it. */
interface TestFile {
  readonly path: string;
}

/** How a file ended, as jest has it. */
interface FileResult {
  readonly testFilePath: string;
  readonly numPassingTests: number;
  /** Skipped, as by the title that a run asks for. */
  readonly numPendingTests: number;
  readonly perfStats: { readonly runtime: number };
}

/** By file, from the root of the checkout, how long it took the last time. */
type Times = Readonly<Record<string, number>>;

const ROOT = path.resolve(import.meta.dirname, '../..');
/** Beside the programs of the control plane, so that a new checkout, and a CI that keeps those, know it. */
const STORE = path.join(path.dirname(cacheDirectory(process.env)), 'test-times.json');

/**
 * Jest's order of files: a run ends when its last file does, so that none that takes long may be begun late. First those of which no time is
 * known, of the dearest level first and then by size, then the others by the time that they took the last time on this machine.
 */
// oxlint-disable-next-line import/no-default-export -- jest asks for it
export default class LongestFirst {
  readonly #store: string;

  constructor(_options?: unknown, store = STORE) {
    this.#store = store;
  }

  sort<T extends TestFile>(tests: readonly T[]): T[] {
    const times = readTimes(this.#store);
    return tests
      .map((test) => ({ test, timeMs: times[nameOf(test.path)], level: levelOf(test.path), size: sizeOf(test.path) }))
      .toSorted((a, b) => (b.timeMs ?? Infinity) - (a.timeMs ?? Infinity) || b.level - a.level || b.size - a.size)
      .map(({ test }) => test);
  }

  /** Notes how long each file took. One that was run in part, or that could not be loaded, says less than it takes. */
  cacheResults(_tests: readonly TestFile[], { testResults }: { readonly testResults: readonly FileResult[] }): void {
    const whole = testResults.filter((result) => result.numPassingTests > 0 && result.numPendingTests === 0);
    const measured = Object.fromEntries(
      whole.map(({ testFilePath, perfStats }) => [nameOf(testFilePath), perfStats.runtime]),
    );
    writeTimes(this.#store, { ...readTimes(this.#store), ...measured });
  }
}

function nameOf(file: string): string {
  return path.relative(ROOT, file);
}

function levelOf(file: string): number {
  const [, folder] = /^test\/([^/]+)\//.exec(nameOf(file)) ?? [];
  return LEVELS.findIndex((level) => level === folder);
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

function readTimes(store: string): Times {
  try {
    return JSON.parse(readFileSync(store, 'utf8')) as Times;
  } catch {
    return {}; // the first run of this user, or one that was cut off
  }
}

/** Whole or not at all: several checkouts may run at once. */
function writeTimes(store: string, times: Times): void {
  const fresh = `${store}.${process.pid}`;
  mkdirSync(path.dirname(store), { recursive: true });
  writeFileSync(fresh, JSON.stringify(times));
  renameSync(fresh, store);
}
