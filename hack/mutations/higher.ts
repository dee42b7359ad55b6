import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { SAMPLE_VARIABLE } from '../test/sample.ts';
import { sumUp, type Total } from '../test/summary.ts';
import { levelOf } from './mutation.ts';
import { apply } from './tree/edit.ts';
import type { Trial } from './trial.ts';
import type { Verdict } from './verdict.ts';

/**
 * Tries trials above the unit level one after another in the copy at `root`: their tests start processes of their own, so that
 * the file itself is changed, and changed back. Throws when the tests fail without any mutation.
 */
export async function runHigherLevel(
  root: string,
  trials: readonly Trial[],
  signal: AbortSignal,
  tell: (verdict: Verdict) => void,
): Promise<readonly Verdict[]> {
  const verdicts: Verdict[] = [];
  const sound = new Set<string>();
  for (const trial of trials) {
    const selection = JSON.stringify(trial.above);
    if (!sound.has(selection)) {
      const { failed, passed } = await run(root, trial, signal);
      if (failed > 0 || passed === 0) throw new Error(`${selection} fails without any mutation, or has no such test`);
      sound.add(selection);
    }
    const verdict = await runWith(root, trial, signal);
    tell(verdict);
    verdicts.push(verdict);
  }
  return verdicts;
}

async function runWith(root: string, trial: Trial, signal: AbortSignal): Promise<Verdict> {
  const file = path.join(root, trial.file);
  const source = readFileSync(file, 'utf8');
  writeFileSync(file, apply(source, trial.edit));
  try {
    const { failed, passed } = await run(root, trial, signal);
    if (failed > 0) return { trial, kind: 'killed', detail: `${failed} failed` };
    return passed > 0 ? { trial, kind: 'survived', detail: '' } : { trial, kind: 'broken', detail: 'no test was run' };
  } finally {
    writeFileSync(file, source);
  }
}

function run(root: string, { above }: Trial, signal: AbortSignal): Promise<Total> {
  const { file = '', only } = above ?? {};
  const argv = [path.join(root, 'hack/test/main.ts'), levelOf({ above: { file } }), file];
  if (only !== undefined) argv.push('-t', only);
  return new Promise((resolve, reject) => {
    // The row of a table that notices it may be any of them.
    const env = { ...process.env, [SAMPLE_VARIABLE]: 'all' };
    const child = spawn(process.execPath, argv, { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'], signal });
    let said = '';
    child.stdout.on('data', (text) => (said += String(text)));
    child.on('error', reject);
    child.on('close', () => resolve(sumUp(said.trim().split('\n').at(-1) ?? '')));
  });
}
