import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

import { GO_ENVIRONMENT } from './go-environment.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** What the provider of the tests does instead of answering, once. */
export type ProviderFault =
  | 'panic'
  | 'fatal'
  | 'hang'
  | 'subnet'
  | 'text'
  | 'image'
  | 'blind'
  | 'several'
  | 'twice'
  | 'lie'
  | 'uninitialized'
  | 'unimplemented'
  | 'quota';

/** Puts the provider of test/mcm-provider, the library that serves it, and the scripts of a new driver into a folder. */
export async function writeFolderProvider(folder: string): Promise<void> {
  await cp(path.join(ROOT, 'test/mcm-provider/folder'), folder, { recursive: true });
  await cp(path.join(ROOT, 'test/mcm-provider/original'), path.join(folder, 'original'), { recursive: true });
  await cp(path.join(ROOT, 'packages/mcm-provider'), path.join(folder, 'mcm-provider'), { recursive: true });
  await cp(path.join(ROOT, 'examples/drivers/shared'), folder, { recursive: true });
  const example = path.join(ROOT, 'examples/drivers/go');
  await cp(path.join(example, 'run.sh'), path.join(folder, 'run.sh'));
  const cloud = await readFile(path.join(example, 'cloud.go'), 'utf8');
  await writeFile(path.join(folder, 'pkg/provider/cloud.go'), cloud.replace('package main', 'package provider'));
}

/** Runs Go in the folder; resolves with what it printed. Throws what it complained of. */
export async function go(folder: string, ...argv: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('go', argv, {
    cwd: folder,
    env: { ...process.env, ...GO_ENVIRONMENT },
    maxBuffer: 64e6,
  });
  return stdout;
}

/** Faults of the provider that runs in a folder. */
export class ProviderFaults {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = path.join(folder, 'run/cloud/faults');
  }

  /** The next call of a method goes wrong. */
  async put(method: string, fault: ProviderFault): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
    await writeFile(path.join(this.#folder, method), fault);
  }

  /** Whether it has not happened yet. */
  async isWaiting(method: string): Promise<boolean> {
    return (await readdir(this.#folder)).includes(method);
  }

  /** Lets a call that hangs go on. */
  async endHang(method: string): Promise<void> {
    await writeFile(path.join(this.#folder, `${method}.end`), '');
  }

  async clear(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Texts of the Secret that the provider accepts. */
export async function acceptedSecret(folder: string): Promise<Readonly<Record<string, string>>> {
  const [, token = ''] = /token: (\S+)/.exec(await readFile(path.join(folder, 'proof/secret.yaml'), 'utf8')) ?? [];
  return { token };
}
