import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { SystemClock } from '../../pkg/clock/system-clock.ts';
import { RULES } from '../../pkg/conformance/rules/index.ts';
import { Verification, type RuleResult } from '../../pkg/conformance/verify.ts';
import { parseDriverAddress } from '../../pkg/driver/grpc/address.ts';
import { classOf } from '../../test/drivers/requests.ts';
import { buildDriverPackage } from './build.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const never = new AbortController().signal;

/** A folder of an author: the example, with the package installed. */
let place: string;
beforeAll(async () => {
  place = await mkdtemp(path.join(tmpdir(), 'author-'));
  const modules = path.join(place, 'node_modules');
  await mkdir(modules);
  await buildDriverPackage(path.join(modules, 'machinist-driver'));
  for (const name of ['commander', '@types'])
    await symlink(path.join(ROOT, 'node_modules', name), path.join(modules, name));
  await cp(path.join(ROOT, 'packages/driver/example'), place, { recursive: true });
  await writeFile(path.join(place, 'package.json'), '{ "type": "module" }\n');
}, 60_000);
afterAll(async () => {
  await rm(place, { recursive: true, force: true });
});

/** What the documentation shows of a driver's main. */
async function snippetIn(page: string): Promise<string> {
  return /```ts\n([^]*?)```/.exec(await readFile(path.join(ROOT, page), 'utf8'))?.[1] ?? '';
}

/** The class that it leaves to its reader. */
const MY_DRIVER = `import type { Driver, DriverContext } from 'machinist-driver';
export interface MyDriver extends Driver {}
export declare const MyDriver: new (region: string, folder: string, log: DriverContext<object>['log']) => Driver;
`;

/** Starts the example; resolves, with how to end it, when it serves. */
async function start(
  socket: string,
  ...more: readonly string[]
): Promise<{ lines: string[]; end(signal: NodeJS.Signals): Promise<number | null> }> {
  const args = [path.join(place, 'main.js'), `--address=unix://${socket}`, `--state-directory=${place}/state`, ...more];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const lines: string[] = [];
  const serving = new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line);
      if (line.includes('"msg":"serving"')) resolve();
    });
    child.once('exit', (code) => reject(new Error(`it ended with ${code}: ${lines.join('\n')}`)));
  });
  await serving;
  return {
    lines,
    end: async (signal) => {
      child.kill(signal);
      const [code] = (await exited) as [number | null];
      return code;
    },
  };
}

test('a driver of the package keeps the contract, with a main of ten lines', async () => {
  const socket = path.join(place, 's');
  let running = await start(socket);
  const machineClass = classOf('folder');
  const results: RuleResult[] = [];
  try {
    using verification = await Verification.begin(
      {
        address: parseDriverAddress(`unix://${socket}`),
        machineClass,
        badClass: { ...machineClass, providerSpec: { size: 1 } },
        secretData: {},
        restart: async () => {
          await running.end('SIGKILL');
          running = await start(socket);
        },
        clock: new SystemClock(),
      },
      never,
    );
    for (const rule of RULES) results.push(await verification.try(rule, never));
  } finally {
    await running.end('SIGKILL');
  }

  expect(results.filter(({ outcome }) => outcome === 'failed')).toEqual([]);
  const skipped = results.filter(({ outcome }) => outcome === 'not applicable').map(({ rule }) => rule.name);
  expect(skipped).toEqual(['foreign-volume', 'untagged-vm', 'bad-secret']);
  const main = await readFile(path.join(place, 'main.js'), 'utf8');
  expect(main.split('\n').filter((line) => line !== '').length).toBeLessThanOrEqual(10);
}, 60_000);

test('it shows what it was asked, and ends in order', async () => {
  const socket = path.join(place, 't');
  const running = await start(socket, '--metrics=127.0.0.1:0');
  const port = running.lines.map((line) => /"metrics":(\d+)/.exec(line)?.[1]).find((one) => one !== undefined);
  using verification = await Verification.begin(
    {
      address: parseDriverAddress(`unix://${socket}`),
      machineClass: classOf('folder'),
      secretData: {},
      clock: new SystemClock(),
    },
    never,
  );
  const [rule] = RULES.filter(({ name }) => name === 'status-of-an-unknown-machine');
  if (rule !== undefined) await verification.try(rule, never);

  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();

  expect(text).toContain('machinist_driver_served_seconds_count{method="GetMachineStatus",code="NotFound"} 1');
  expect(text).toContain('machinist_driver_serving{method="GetMachineStatus"} 0');
  expect(await running.end('SIGTERM')).toBe(0);
}, 60_000);

test('the types of the package are those that the example is checked with', async () => {
  const compilerOptions = {
    checkJs: true,
    allowJs: true,
    noEmit: true,
    allowImportingTsExtensions: true,
    strict: true,
    module: 'nodenext',
    target: 'es2024',
    lib: ['es2024', 'esnext.disposable'],
    skipLibCheck: true,
    types: ['node'],
  };
  const [snippet, other] = await Promise.all(
    ['packages/driver/README.md', 'docs/development/writing-a-driver.md'].map(snippetIn),
  );
  expect(snippet).toBe(other);
  await writeFile(path.join(place, 'main.ts'), snippet ?? '');
  await writeFile(path.join(place, 'my-driver.ts'), MY_DRIVER);
  await writeFile(path.join(place, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.js', '*.ts'] }));
  const check = async (): Promise<string> => {
    const run = promisify(execFile)(path.join(ROOT, 'node_modules/.bin/tsc'), ['-p', place]);
    return await run.then(({ stdout }) => stdout).catch((err: { stdout: string }) => err.stdout);
  };

  expect(await check()).toBe('');

  const driver = path.join(place, 'driver.js');
  await writeFile(
    driver,
    (await readFile(driver, 'utf8')).replace('idempotentCreate: true, ', "idempotentCreate: 'yes', "),
  );
  expect(await check()).toMatch(/driver\.js.*Type 'string' is not assignable to type 'boolean'/);
}, 60_000);

test('the sources say how to get the package where they are installed as it, and the package does not', async () => {
  const prepare = (folder: string): Promise<unknown> =>
    promisify(execFile)('npm', ['run', '--silent', '--if-present', 'prepare'], { cwd: folder });

  await expect(prepare(path.join(ROOT, 'packages/driver'))).rejects.toThrow(/npm run driver-package/);
  await expect(prepare(path.join(place, 'node_modules/machinist-driver'))).resolves.toBeDefined();
  const about: unknown = JSON.parse(
    await readFile(path.join(place, 'node_modules/machinist-driver/package.json'), 'utf8'),
  );
  expect(about).not.toHaveProperty('private');
}, 60_000);
