import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { RULES } from '../../pkg/driver/conformance/rules/index.ts';
import { Verification } from '../../pkg/driver/conformance/verify.ts';
import { parseDriverAddress } from '../../pkg/driver/grpc/address.ts';
import { NewDriver, write } from '../../test/drivers/new-driver.ts';
import { classOf } from '../../test/drivers/requests.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const never = new AbortController().signal;

const NAME = 'acme';

/** A folder of an author: a new driver, with its packages installed. */
let place: string;
beforeAll(async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'author-'));
  await write('typescript', NAME, folder);
  place = path.join(folder, NAME);
  const modules = path.join(place, 'node_modules');
  await mkdir(modules);
  await symlink(path.join(place, 'machinist-driver'), path.join(modules, 'machinist-driver'));
  for (const name of ['commander', '@types'])
    await symlink(path.join(ROOT, 'node_modules', name), path.join(modules, name));
});
afterAll(async () => {
  await rm(path.dirname(place), { recursive: true, force: true });
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
  const args = [
    path.join(place, 'main.ts'),
    `--address=unix://${socket}`,
    `--state-directory=${place}/state`,
    `--cloud=${place}/cloud`,
    ...more,
  ];
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

test('a new driver in TypeScript keeps the contract, with a main of ten lines', async () => {
  await using driver = await NewDriver.start(place);

  const { rules, ...counts } = await driver.verify();

  expect(rules.filter(({ outcome }) => outcome !== 'passed')).toEqual([]);
  expect(counts).toMatchObject({ passed: RULES.length, failed: 0, notApplicable: 0 });
  const main = await readFile(path.join(place, 'main.ts'), 'utf8');
  expect(main.split('\n').filter((line) => line !== '').length).toBeLessThanOrEqual(10);
});

test('it shows what it was asked, and ends in order', async () => {
  const socket = path.join(place, 't');
  const running = await start(socket, '--metrics=127.0.0.1:0');
  const port = running.lines.map((line) => /"metrics":(\d+)/.exec(line)?.[1]).find((one) => one !== undefined);
  using verification = await Verification.begin(
    {
      address: parseDriverAddress(`unix://${socket}`),
      machineClass: classOf(NAME),
      secretData: { token: new TextEncoder().encode('example-token') },
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
});

test('a new driver and what the documentation shows have the types of the package', async () => {
  const [snippet, other] = await Promise.all(
    ['packages/driver/README.md', 'docs/development/writing-a-driver.md'].map(snippetIn),
  );
  expect(snippet).toBe(other);
  await writeFile(path.join(place, 'snippet.ts'), snippet ?? '');
  await writeFile(path.join(place, 'my-driver.ts'), MY_DRIVER);
  const check = async (): Promise<string> => {
    const run = promisify(execFile)(path.join(ROOT, 'node_modules/.bin/tsc'), ['-p', place]);
    return await run.then(({ stdout }) => stdout).catch((err: { stdout: string }) => err.stdout);
  };

  expect(await check()).toBe('');

  const driver = path.join(place, 'driver.ts');
  const text = await readFile(driver, 'utf8');
  await writeFile(driver, text.replace('idempotentCreate: true, ', "idempotentCreate: 'yes', "));
  expect(await check()).toMatch(/driver\.ts.*Type 'string' is not assignable to type 'boolean'/);
});

test('the sources say how to get the package where they are installed as it, and the package does not', async () => {
  const prepare = (folder: string): Promise<unknown> =>
    promisify(execFile)('npm', ['run', '--silent', '--if-present', 'prepare'], { cwd: folder });

  await expect(prepare(path.join(ROOT, 'packages/driver'))).rejects.toThrow(/npm run driver-package/);
  await expect(prepare(path.join(place, 'node_modules/machinist-driver'))).resolves.toBeDefined();
  const about: unknown = JSON.parse(
    await readFile(path.join(place, 'node_modules/machinist-driver/package.json'), 'utf8'),
  );
  expect(about).not.toHaveProperty('private');
});
