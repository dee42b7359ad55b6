import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';

import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';

const ROOT = path.resolve(import.meta.dirname, '..');

interface Bootstrap {
  readonly placeOf: (command: string, env: { readonly INIT_CWD?: string }, cwd: string) => string;
  readonly packagesOf: (lockfile: string) => string;
  readonly install: (npm: string, args: readonly string[], tickMs: number) => Promise<unknown>;
}

const require = createRequire(import.meta.url);
const { placeOf, packagesOf, install } = require('./bootstrap-install.cjs') as Bootstrap; // by its source
const { lockInstallation } = require('./installation-lock.cjs') as {
  readonly lockInstallation: (
    file: string,
    wait: (ms: number) => void,
    times: { readonly beatMs: number; readonly staleMs: number },
  ) => Promise<() => void>;
};

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

/** A checkout with what an installation reads, and a program to run after it. */
function checkout(): string {
  const root = mkdtempSync(path.join(tmpdir(), 'machinist-bootstrap-'));
  for (const folder of ['hack', 'cmd/demo']) mkdirSync(path.join(root, folder), { recursive: true });
  for (const file of [
    'hack/bootstrap.cjs',
    'hack/bootstrap-install.cjs',
    'hack/installation-lock.cjs',
    'package-lock.json',
  ])
    cpSync(path.join(ROOT, file), path.join(root, file));
  writeFileSync(path.join(root, 'cmd/demo/main.ts'), 'console.log("the demo");');
  return root;
}

function fakeNpm(root: string, script: string): void {
  writeFileSync(path.join(root, 'npm-cli.js'), `const fs = require('node:fs'); ${script}`);
}

function bootstrap(root: string): ChildProcess & { readonly stderr: Readable; readonly stdout: Readable } {
  return spawn(process.execPath, [path.join(root, 'hack/bootstrap.cjs'), 'demo'], {
    env: { ...process.env, npm_execpath: path.join(root, 'npm-cli.js') },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** Runs to its end. */
async function ended(child: ReturnType<typeof bootstrap>): Promise<{ code: number | null; out: string; err: string }> {
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: code as number | null, out, err };
}

test('of two first commands at the same time one installs, and both run', async () => {
  const root = checkout();
  const installs = path.join(root, 'installs');
  const installed = JSON.stringify(path.join(root, 'node_modules'));
  fakeNpm(
    root,
    `fs.appendFileSync(${JSON.stringify(installs)}, 'x'); setTimeout(() => fs.mkdirSync(${installed}), 1500);`,
  );

  const results = await Promise.all([ended(bootstrap(root)), ended(bootstrap(root))]);

  for (const { code, out } of results) expect({ code, out }).toEqual({ code: 0, out: 'the demo\n' });
  expect(readFileSync(installs, 'utf8')).toBe('x');
  expect(results.map(({ err }) => /Waiting for another process that installs npm packages… 0 s/.test(err))).toContain(
    true,
  );
  expect(existsSync(path.join(root, '.machinist-installing'))).toBe(false);
  rmSync(root, { recursive: true });
});

test('the lock of a process that died is taken over by one of those that wait', async () => {
  const file = path.join(mkdtempSync(path.join(tmpdir(), 'machinist-lock-')), 'lock');
  writeFileSync(file, 'of a dead process');
  utimesSync(file, 1, 1);
  const order: string[] = [];
  const use = async (name: string): Promise<void> => {
    const release = await lockInstallation(file, () => undefined, { beatMs: 50, staleMs: 60_000 });
    order.push(`${name} begins`);
    await new Promise((resolve) => setTimeout(resolve, 700));
    order.push(`${name} ends`);
    release();
  };

  await Promise.all([use('a'), use('b')]);

  const first = order[0]?.[0] ?? '';
  const second = first === 'a' ? 'b' : 'a';
  expect(order).toEqual([`${first} begins`, `${first} ends`, `${second} begins`, `${second} ends`]);
  rmSync(path.dirname(file), { recursive: true });
});

describe('a lock of an installation', () => {
  const OTHER = 'of another process';
  /** In seconds. */
  const LONG_AGO = 1;
  const times = { beatMs: 20, staleMs: 60_000 };
  let file: string;

  beforeEach(() => void (file = path.join(mkdtempSync(path.join(tmpdir(), 'machinist-lock-')), 'lock')));
  afterEach(() => {
    jest.useRealTimers();
    rmSync(path.dirname(file), { recursive: true });
  });

  /** As if it had been touched so many seconds before now. */
  function age(agoS: number): void {
    const mtime = statSync(file).mtimeMs / 1_000 - agoS;
    utimesSync(file, mtime, mtime);
  }

  /** Begins to take it, and resolves when it waits for another holder: `wrote` is what it had written before the other one did. */
  async function waiting(): Promise<{ readonly taken: Promise<() => void>; readonly wrote: string }> {
    let taken: Promise<() => void> | undefined;
    let wrote = '';
    await new Promise<void>((resolve, reject) => {
      taken = lockInstallation(file, () => resolve(), times);
      taken.then(() => reject(new Error('it was taken')), reject);
      wrote = readFileSync(file, 'utf8');
      if (wrote !== OTHER) writeFileSync(file, OTHER);
    });
    if (taken === undefined) throw new Error('nothing was taken');
    return { taken, wrote };
  }

  test.each([
    { what: 'has died', agoS: 86_400 },
    { what: 'died while the clock was ahead', agoS: -86_400 },
  ])('whose holder $what is taken over by the last process that tries to', async ({ agoS }) => {
    writeFileSync(file, 'of a dead process');
    age(agoS);

    const { taken, wrote } = await waiting();
    rmSync(file);
    const release = await taken;

    expect(wrote).toMatch(new RegExp(`^${process.pid}-`));
    expect(readFileSync(file, 'utf8')).toBe(wrote);
    release();
    expect(existsSync(file)).toBe(false);
  });

  test.each([10, -10])('that was touched %s s ago is waited for', async (agoS) => {
    writeFileSync(file, OTHER);
    age(agoS);

    const { taken, wrote } = await waiting();

    expect(wrote).toBe(OTHER);
    rmSync(file);
    (await taken)();
  });

  test('is kept alive by its holder, and by it alone', async () => {
    jest.useFakeTimers();
    const release = await lockInstallation(file, () => undefined, times);
    utimesSync(file, LONG_AGO, LONG_AGO);
    jest.advanceTimersByTime(times.beatMs);
    expect(statSync(file).mtimeMs).toBeGreaterThan(LONG_AGO * 1_000);

    writeFileSync(file, OTHER);
    utimesSync(file, LONG_AGO, LONG_AGO);
    jest.advanceTimersByTime(5 * times.beatMs);

    expect(statSync(file).mtimeMs).toBe(LONG_AGO * 1_000);
    release();
    expect(readFileSync(file, 'utf8')).toBe(OTHER);
  });

  test('is released when its process exits', () => {
    const lock = JSON.stringify(path.join(ROOT, 'hack/installation-lock.cjs'));
    const script = `require(${lock}).lockInstallation(${JSON.stringify(file)}).then(() => {
      console.log(require('node:fs').existsSync(${JSON.stringify(file)}));
      process.exit(0);
    });`;

    const { stdout } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' });

    expect({ stdout, isHeld: existsSync(file) }).toEqual({ stdout: 'true\n', isHeld: false });
  });
});

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s while npm installs ends it, with one sentence and code 130',
  async (signal) => {
    const root = checkout();
    const started = path.join(root, 'started');
    fakeNpm(root, `fs.writeFileSync(${JSON.stringify(started)}, ''); setInterval(() => undefined, 1000);`);
    const child = bootstrap(root);
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
