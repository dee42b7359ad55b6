import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';

import { cacheDirectory } from '../control-plane/user-directories.ts';
import { readOptions, text } from '../options.ts';
import { WITH_IRONCORE } from '../test/levels.ts';
import { IRONCORE_PROGRAMS, PROGRAMS_VARIABLE } from './programs.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');

/**
 * Builds IronCore's own programs from a checkout of its sources, and runs the tests that need them: its API server, its scheduler, a
 * machinebroker and a machinepoollet. Nothing is written to the checkout, and nothing of it is kept but the programs, in the user's cache.
 */
async function main(): Promise<number> {
  const { ironcore } = readOptions("Tests with IronCore's own programs.", {
    ironcore: text("checkout of IronCore's sources"),
  });
  if (ironcore === undefined) {
    console.error('Name a checkout of IronCore: --ironcore DIR');
    return 2;
  }
  const revision = spawnSync('git', ['-C', ironcore, 'rev-parse', 'HEAD'], { encoding: 'utf8' }).stdout.trim();
  const directory = path.join(cacheDirectory(process.env), `ironcore-${revision === '' ? 'unknown' : revision}`);
  mkdirSync(directory, { recursive: true });
  for (const [name, source] of Object.entries(IRONCORE_PROGRAMS)) {
    const target = path.join(directory, name);
    if (existsSync(target) && revision !== '') continue;
    console.error(`building ${name} of IronCore ${revision.slice(0, 12)}…`);
    const { status } = spawnSync('go', ['build', '-trimpath', '-ldflags=-s -w', '-o', target, source], {
      cwd: ironcore,
      stdio: 'inherit',
      env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=readonly' },
    });
    if (status !== 0) return status ?? 1;
  }
  const child = spawn(process.execPath, [path.join(ROOT, 'hack/test/main.ts'), 'integration', ...WITH_IRONCORE], {
    cwd: ROOT,
    stdio: 'inherit',
    env: { ...process.env, [PROGRAMS_VARIABLE]: directory },
  });
  return await new Promise((resolve) => child.on('exit', (code) => resolve(code ?? 1)));
}

process.exitCode = await main();
