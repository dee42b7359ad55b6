import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';

import { fromMcmProvider } from '../../cmd/machinist/driver/from-mcm-provider.ts';
import { ORIGINAL } from '../../cmd/machinist/driver/mcm-program.ts';
import { ownTerminal } from '../../cmd/machinist/terminal.ts';
import { cacheDirectory } from '../control-plane/user-directories.ts';
import { readOptions, text } from '../options.ts';
import { WITH_MCM_PROVIDERS } from '../test/levels.ts';
import { MOTO_VARIABLE, MOTO_VERSION, PROVIDERS_VARIABLE } from './programs.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
/**
 * Makes the driver of a real provider from checkouts of its sources and of machine-controller-manager, as `machinist driver
 * from-mcm-provider` does it, and runs the tests that need it. Nothing is written to the checkouts, and nothing of them is kept but the
 * programs and the simulator, in the user's cache.
 */
async function main(): Promise<number> {
  const { mcm, provider } = readOptions('Tests with real providers of machine-controller-manager.', {
    mcm: text('checkout of machine-controller-manager'),
    provider: text('NAME=DIR: a provider and a checkout of it, such as aws=DIR'),
  });
  const [name = '', source] = (provider ?? '').split('=');
  const tests = new Map(Object.entries(WITH_MCM_PROVIDERS)).get(name);
  if (mcm === undefined || source === undefined || tests === undefined) {
    const names = Object.keys(WITH_MCM_PROVIDERS).join(', ');
    console.error(`Name the checkouts: --mcm DIR --provider NAME=DIR, with NAME one of: ${names}`);
    return 2;
  }
  const cache = cacheDirectory(process.env);
  const out = path.join(cache, `mcm-provider-${name}`);
  rmSync(out, { recursive: true, force: true });
  mkdirSync(cache, { recursive: true });
  const options = { out, source, mcmSource: mcm, import: [], expression: undefined, build: true };
  const code = await fromMcmProvider(undefined, options, ownTerminal());
  if (code !== 0) return code;
  console.error(`${name}: ${revisionOf(source)}; machine-controller-manager: ${revisionOf(mcm)}`);
  const child = spawn(process.execPath, [path.join(ROOT, 'hack/test/main.ts'), tests.level, ...tests.files], {
    cwd: ROOT,
    stdio: 'inherit',
    env: {
      ...process.env,
      [PROVIDERS_VARIABLE]: [
        `${name}=${path.join(out, `${name}-driver`)}`,
        `${name}.machine-controller=${original(source, mcm, path.join(out, 'machine-controller'))}`,
        `machine-controller-manager=${original(mcm, mcm, path.join(out, 'machine-controller-manager'))}`,
      ].join(','),
      ...(name === 'aws' ? { [MOTO_VARIABLE]: pythonWithMoto(cache) } : {}),
    },
  });
  return await new Promise((resolve) => child.on('exit', (status) => resolve(status ?? 1)));
}

/** Compiles `cmd/<name of the file>` of a checkout, with machine-controller-manager from its own. Neither is written to. */
function original(checkout: string, mcm: string, file: string): string {
  console.error(`compiling ${path.basename(file)} of ${checkout} …`);
  const modules = `${file}.mod`;
  for (const kind of ['mod', 'sum'])
    copyFileSync(path.join(checkout, `go.${kind}`), path.join(path.dirname(file), `${path.basename(file)}.${kind}`));
  const env = { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=mod', GOWORK: 'off' };
  const go = (...argv: readonly string[]): unknown =>
    execFileSync('go', argv, { cwd: checkout, stdio: 'inherit', env });
  if (checkout !== mcm) go('mod', 'edit', `-replace=${ORIGINAL}=${path.resolve(mcm)}`, modules);
  go('build', '-trimpath', `-modfile=${modules}`, '-o', file, `./cmd/${path.basename(file)}`);
  return file;
}

function revisionOf(checkout: string): string {
  const { stdout } = spawnSync('git', ['-C', checkout, 'describe', '--always', '--tags'], { encoding: 'utf8' });
  return stdout.trim() || 'unknown revision';
}

/** The Python of an environment with moto, which plays EC2. */
function pythonWithMoto(cache: string): string {
  const folder = path.join(cache, `moto-${MOTO_VERSION}`);
  const python = path.join(folder, 'bin/python');
  if (existsSync(path.join(folder, 'bin/moto_server'))) return python;
  console.error(`installing moto ${MOTO_VERSION} …`);
  execFileSync('python3', ['-m', 'venv', folder], { stdio: 'inherit' });
  execFileSync(path.join(folder, 'bin/pip'), ['install', '--quiet', `moto[ec2,server]==${MOTO_VERSION}`], {
    stdio: 'inherit',
  });
  return python;
}

process.exitCode = await main();
