import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

import { afterEach, beforeEach, expect, test } from '@jest/globals';

const SHARED = path.resolve(import.meta.dirname, '../../../examples/drivers/shared');
const SERVES = `echo '{"msg":"serving"}'; exec sleep 600`;

let folder: string;
let started: number[];
beforeEach(async () => {
  started = [];
  folder = await mkdtemp(path.join(tmpdir(), 'scripts-'));
  await cp(SHARED, folder, { recursive: true });
  await writeFile(path.join(folder, 'run.sh'), SERVES);
});
afterEach(async () => {
  for (const one of started) {
    try {
      process.kill(one, 'SIGKILL');
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code !== 'ESRCH') throw err;
    }
  }
  await rm(folder, { recursive: true });
});

/** Types `sh <script>`: what it says on standard error when it fails, else nothing. */
async function failureOf(script: string): Promise<string> {
  try {
    await promisify(execFile)('sh', [script], { cwd: folder });
    return '';
  } catch (err) {
    return (err as { stderr: string }).stderr;
  }
}

/** What stands in run/pid; undefined when there is none. */
async function pid(): Promise<number | undefined> {
  const text = await readFile(path.join(folder, 'run/pid'), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  started.push(Number(text));
  return Number(text);
}

test('a driver that runs is not started a second time', async () => {
  expect(await failureOf('start.sh')).toBe('');
  const first = await pid();

  expect(await failureOf('start.sh')).toBe(
    `process ${first} of run/pid runs: end it with kill ${first}, or remove run/pid if that is another program\n`,
  );
  expect(await pid()).toBe(first);
});

test('a driver that ends before it serves is told of with the end of its log, and leaves no run/pid', async () => {
  await writeFile(path.join(folder, 'run.sh'), `echo '{"msg":"no such cloud"}'; exit 1`);

  expect(await failureOf('start.sh')).toBe('it has ended; the end of run/log:\n{"msg":"no such cloud"}\n');
  expect(await pid()).toBeUndefined();
});

test('what an earlier one said is not taken for the word of the one that is started', async () => {
  expect(await failureOf('start.sh')).toBe('');
  process.kill((await pid()) ?? 0, 'SIGKILL');
  await rm(path.join(folder, 'run/pid'));
  await writeFile(path.join(folder, 'run.sh'), 'exit 1');

  expect(await failureOf('start.sh')).toMatch(/^it has ended/);
  expect(await pid()).toBeUndefined();
});

test('a restart ends the driver and starts another one', async () => {
  expect(await failureOf('start.sh')).toBe('');
  const first = await pid();

  expect(await failureOf('proof/restart.sh')).toBe('');

  const second = await pid();
  expect(second).toBeDefined();
  expect(second).not.toBe(first);
});

test('a restart of a driver that does not run fails, and starts none', async () => {
  expect(await failureOf('proof/restart.sh')).toMatch(/run\/pid/);
  expect(await pid()).toBeUndefined();

  await mkdir(path.join(folder, 'run'));
  // No system has so many processes.
  await writeFile(path.join(folder, 'run/pid'), '99999999\n');
  expect(await failureOf('proof/restart.sh')).toMatch(/kill/);
  expect(await readFile(path.join(folder, 'run/pid'), 'utf8')).toBe('99999999\n');
});
