import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { sumUp, type Total } from '../test/summary.ts';
import { levelOf, mutate, type Mutation } from './mutation.ts';
import type { Verdict } from './verdict.ts';

/**
 * Runs mutations above the unit level one after another in the copy at `root`: their tests start processes of their own, so that
 * the file itself is changed, and changed back. Throws when the tests fail without any mutation.
 */
export async function runHigherLevel(
  root: string,
  mutations: readonly Mutation[],
  signal: AbortSignal,
  tell: (verdict: Verdict) => void,
): Promise<readonly Verdict[]> {
  const verdicts: Verdict[] = [];
  const sound = new Set<string>();
  for (const mutation of mutations) {
    const selection = JSON.stringify([mutation.tests, mutation.only]);
    if (!sound.has(selection)) {
      const { failed, passed } = await run(root, mutation, signal);
      if (failed > 0 || passed === 0) throw new Error(`${selection} fails without any mutation, or has no such test`);
      sound.add(selection);
    }
    const verdict = await runWith(root, mutation, signal);
    tell(verdict);
    verdicts.push(verdict);
  }
  return verdicts;
}

async function runWith(root: string, mutation: Mutation, signal: AbortSignal): Promise<Verdict> {
  const file = path.join(root, mutation.file);
  const source = readFileSync(file, 'utf8');
  writeFileSync(file, mutate(source, mutation));
  try {
    const { failed, passed } = await run(root, mutation, signal);
    if (failed > 0) return { mutation, kind: 'killed', detail: `${failed} failed` };
    return passed > 0
      ? { mutation, kind: 'survived', detail: '' }
      : { mutation, kind: 'broken', detail: 'no test was run' };
  } finally {
    writeFileSync(file, source);
  }
}

function run(root: string, mutation: Mutation, signal: AbortSignal): Promise<Total> {
  const { tests, only } = mutation;
  const argv = [path.join(root, 'hack/test/main.ts'), levelOf(mutation), ...tests];
  if (only !== undefined) argv.push('-t', only);
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, argv, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'], signal });
    let said = '';
    child.stdout.on('data', (text) => (said += String(text)));
    child.on('error', reject);
    child.on('close', () => resolve(sumUp(said.trim().split('\n').at(-1) ?? '')));
  });
}
