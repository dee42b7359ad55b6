import { globSync, mkdtempSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { runProjects } from './jest.ts';

/** How often V8 ran a piece of a file, both by offset. */
interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

/** What environment.js writes of a test file. */
interface Record {
  readonly test: string;
  readonly ranges: readonly (readonly [file: string, ranges: readonly Range[]])[];
}

/** What tests run of the source as it is, and which of them fail with it. */
export class Reach {
  /** By test, what it runs by file. */
  readonly #ranges: ReadonlyMap<string, ReadonlyMap<string, readonly Range[]>>;
  /** Tests that fail without any change, with the reason. */
  readonly failing: ReadonlyMap<string, string>;

  constructor(
    ranges: ReadonlyMap<string, ReadonlyMap<string, readonly Range[]>>,
    failing: ReadonlyMap<string, string>,
  ) {
    this.#ranges = ranges;
    this.failing = failing;
  }

  /** Whether a test runs what lies at an offset of a file. */
  has(test: string, file: string, offset: number): boolean {
    const around = (this.#ranges.get(test)?.get(file) ?? []).filter(
      ({ startOffset, endOffset }) => startOffset <= offset && offset < endOffset,
    );
    // Ranges are nested: the smallest says it.
    return (around.toSorted((a, b) => a.endOffset - a.startOffset - (b.endOffset - b.startOffset))[0]?.count ?? 0) > 0;
  }
}

/** Runs tests once, in the copy at `root`, and notes what they run of the files. */
export async function measureReach(
  root: string,
  tests: readonly string[],
  files: readonly string[],
  signal: AbortSignal,
): Promise<Reach> {
  const reach = mkdtempSync(path.join(root, '.reach-'));
  const environment = { reach, files: files.map((file) => path.join(root, file)) };
  const { results } = await runProjects(root, [{ name: 'unchanged', tests, environment }], signal);
  const failing = results
    .filter(({ failed, error }) => failed.length > 0 || error !== undefined)
    .map(({ test, failed, error }) => [test, failed[0] ?? error ?? ''] as const);
  const records = globSync('*.json', { cwd: reach }).map((name) => readRecord(root, path.join(reach, name)));
  return new Reach(new Map(records), new Map(failing));
}

function readRecord(root: string, file: string): [string, ReadonlyMap<string, readonly Range[]>] {
  const { test, ranges } = JSON.parse(readFileSync(file, 'utf8')) as Record;
  return [path.relative(root, test), new Map(ranges.map(([one, its]) => [path.relative(root, one), its]))];
}
