import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { expect, jest, test } from '@jest/globals';

const ROOT = path.resolve(import.meta.dirname, '..');

interface Bootstrap {
  readonly placeOf: (command: string, env: { readonly INIT_CWD?: string }, cwd: string) => string;
  readonly packagesOf: (lockfile: string) => string;
  readonly install: (npm: string, args: readonly string[], tickMs: number) => Promise<unknown>;
}

const { placeOf, packagesOf, install } = createRequire(import.meta.url)('./bootstrap-install.cjs') as Bootstrap; // by its source

test.each([
  { command: 'machinist', env: { INIT_CWD: '/home/me' }, place: '/home/me', what: 'where npm was started' },
  { command: 'machinist', env: {}, place: '/here', what: 'where it was started, without npm' },
  { command: 'test', env: { INIT_CWD: '/home/me' }, place: ROOT, what: 'in the checkout' },
])('$command runs $what', ({ command, env, place }) => {
  expect(placeOf(command, env, '/here')).toBe(place);
});

test('packages are installed again when the lockfile has others, and not for another version of this project', () => {
  const lockfile = (version: string, of: string): string =>
    JSON.stringify({ version, packages: { '': { name: 'machinist', version }, 'node_modules/a': { version: of } } });

  expect(packagesOf(lockfile('2.0.0', '1.0.0'))).toBe(packagesOf(lockfile('1.0.0', '1.0.0')));
  expect(packagesOf(lockfile('1.0.0', '1.0.1'))).not.toBe(packagesOf(lockfile('1.0.0', '1.0.0')));
});

test('an installation shows every while that npm still works, and its end', async () => {
  const said: string[] = [];
  const spy = jest.spyOn(console, 'error').mockImplementation((line: string) => void said.push(line));

  const done = await install(process.execPath, ['-e', 'console.error("a word of npm"); setTimeout(() => {}, 300)'], 50);
  spy.mockRestore();

  expect(done).toEqual({ status: 0, stderr: 'a word of npm\n', isInterrupted: false });
  expect(said[0]).toBe('Installing npm packages (about 500 MB, once; a minute or two)…');
  expect(said[1]).toBe('Still installing npm packages… 0 s');
  expect(said.at(-1)).toMatch(/^Installed npm packages in \d s\.$/);
});

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s while npm installs ends it, with one sentence and code 130',
  async (signal) => {
    const root = mkdtempSync(path.join(tmpdir(), 'machinist-bootstrap-'));
    mkdirSync(path.join(root, 'hack'));
    for (const file of ['hack/bootstrap.cjs', 'hack/bootstrap-install.cjs', 'package-lock.json'])
      cpSync(path.join(ROOT, file), path.join(root, file));
    const started = path.join(root, 'started');
    writeFileSync(
      path.join(root, 'npm-cli.js'),
      `require('node:fs').writeFileSync(${JSON.stringify(started)}, String(process.pid)); setInterval(() => undefined, 1000);`,
    );
    const child = spawn(process.execPath, [path.join(root, 'hack/bootstrap.cjs'), 'demo'], {
      env: { ...process.env, npm_execpath: path.join(root, 'npm-cli.js') },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));

    while (!existsSync(started)) await new Promise((resolve) => setTimeout(resolve, 20));
    child.kill(signal);
    const [code] = (await once(child, 'close')) as [number | null];

    expect({ code, lines: stderr.split('\n') }).toEqual({
      code: 130,
      lines: [
        'Installing npm packages (about 500 MB, once; a minute or two)…',
        'Interrupted while npm packages were being installed; the next run starts again.',
        '',
      ],
    });
    expect(existsSync(path.join(root, 'node_modules/.machinist-installed'))).toBe(false);
    rmSync(root, { recursive: true });
  },
);
