import { execFileSync } from 'node:child_process';

/** Lines of a file, the first one 1, both ends included. */
interface Lines {
  readonly first: number;
  readonly last: number;
}

/** By file, from the root of the checkout, the lines that have changed since a commit, in the working tree. */
export type Changes = ReadonlyMap<string, readonly Lines[]>;

/** What git says has changed since `base`. Throws when there is no such commit. */
export function readChanges(root: string, base: string): Changes {
  return parseDiff(git(root, 'diff', '--unified=0', '--no-color', '--no-ext-diff', base, '--'));
}

/** On the main branch, how many commits are looked back to at most where time chooses. */
const MOST_COMMITS = 30;

/** Where a change began. */
export interface Base {
  readonly commit: string;
  /** The commit before the newest one, where `commit` is further back: what changed since then comes first. */
  readonly newest?: string;
}

/**
 * Where a change began: the last commit that the main branch also has. On the main branch itself, the commit before; with `isTimed`, as
 * many commits before as are not released yet, 30 at most. A clone of few commits ends where they do.
 */
export function defaultBase(root: string, isTimed: boolean): Base {
  const head = git(root, 'rev-parse', 'HEAD').trim();
  for (const main of ['origin/main', 'main']) {
    try {
      const base = git(root, 'merge-base', 'HEAD', main).trim();
      if (base !== head) return { commit: base };
    } catch {
      // there is no such branch
    }
  }
  const newest = isDirty(root) ? head : (parentOf(root, head) ?? head);
  if (!isTimed) return { commit: newest };
  const oldest = linesOf(git(root, 'rev-list', `--max-count=${MOST_COMMITS}`, 'HEAD', '--not', '--tags=v*')).at(-1);
  const commit = oldest === undefined ? newest : (parentOf(root, oldest) ?? oldest);
  return commit === newest ? { commit } : { commit, newest };
}

function parentOf(root: string, commit: string): string | undefined {
  return linesOf(git(root, 'rev-list', '--max-count=2', '--first-parent', commit))[1];
}

function linesOf(text: string): readonly string[] {
  return text.split('\n').filter((line) => line !== '');
}

/** The changes in a diff without context. What was only removed counts as a change of the lines around it. */
export function parseDiff(diff: string): Changes {
  const changes = new Map<string, Lines[]>();
  let file = '';
  for (const line of diff.split('\n')) {
    if (line.startsWith('+++ ')) file = line.replace(/^\+\+\+ (b\/)?/, '');
    const [, first, count = '1'] = /^@@ -\S+ \+(\d+)(?:,(\d+))? @@/.exec(line) ?? [];
    if (first === undefined || file === '/dev/null') continue;
    const from = Number(first);
    const lines = count === '0' ? { first: from, last: from + 1 } : { first: from, last: from + Number(count) - 1 };
    changes.set(file, [...(changes.get(file) ?? []), lines]);
  }
  return changes;
}

function isDirty(root: string): boolean {
  return git(root, 'status', '--porcelain', '--untracked-files=no').trim() !== '';
}

function git(root: string, ...args: string[]): string {
  return execFileSync('git', args, {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    maxBuffer: 1e9,
  });
}
