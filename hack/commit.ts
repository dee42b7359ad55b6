import { execFileSync } from 'node:child_process';

/** What chooses samples: another one with each commit, the same again for one commit; without a checkout of git, one for each day. */
export function presentCommit(root: string): string {
  try {
    return execFileSync('git', ['rev-parse', '--short=12', 'HEAD'], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return new Date().toISOString().slice(0, 10);
  }
}
