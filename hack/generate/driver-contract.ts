import { execFile } from 'node:child_process';
import { glob, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);
const ROOT = path.resolve(import.meta.dirname, '../..');
const BUF = createRequire(import.meta.url).resolve('@bufbuild/buf/bin/buf');

/** The TypeScript of the driver contract, as buf.gen.yaml says: path from the project's root → text. Works offline. */
export async function driverContractFiles(): Promise<ReadonlyMap<string, string>> {
  const directory = await mkdtemp(path.join(tmpdir(), 'buf-'));
  try {
    await runBuf('generate', '--output', directory);
    const files = new Map<string, string>();
    for await (const file of glob('**/*.ts', { cwd: directory })) {
      files.set(file, await readFile(path.join(directory, file), 'utf8'));
    }
    return files;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** What buf finds wrong with the contract, one line each. */
export async function driverContractFaults(): Promise<readonly string[]> {
  try {
    await runBuf('lint');
    return [];
  } catch (err) {
    const { stdout = '' } = err as { stdout?: string }; // execFile's error carries the output
    if (stdout === '') throw err;
    return stdout.trim().split('\n');
  }
}

async function runBuf(...args: readonly string[]): Promise<void> {
  await execute(process.execPath, [BUF, ...args], { cwd: ROOT });
}
