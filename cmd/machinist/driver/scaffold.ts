import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

import { messageOf } from '../../../pkg/driver/errno.ts';
import { CommandError } from '../command-error.ts';

/** Folders of examples/drivers. */
export const LANGUAGES = ['go', 'python', 'typescript'] as const;

/** In which a driver is written. */
export type Language = (typeof LANGUAGES)[number];

/** What an example calls itself, in the names of its module, program, provider, class and VMs. */
export const EXAMPLE_NAME = 'folder-driver';

/** Where the package for drivers in TypeScript lies in a bundle, which cannot build it. */
export const BUILT_PACKAGE = 'machinist-driver';

/** Names of folders in a driver's, words that are no text in YAML, and what Go takes for something else. */
const TAKEN = /^(contract|machine|machinist-driver|proof|proto|run|false|n|no|null|off|on|true|y|yes|internal|vendor)$/;

/** What .gitignore is called in the package of npm, which would leave it out under its own name. */
export const PACKED_GITIGNORE = 'packed-gitignore';

/** From the root of a checkout, and of a bundle. */
export const CONTRACT = 'proto/machine/driver/v1/driver.proto';

/** What a new driver is made of. */
export interface Scaffold {
  readonly language: Language;
  /** Of the driver and of its folder. */
  readonly name: string;
  /** The folder in which that one is made. */
  readonly place: string;
  /** The checkout, or the bundle. */
  readonly root: string;
}

/**
 * Writes a driver that keeps the contract: an example under another name. Resolves with the commands that build, start and prove it.
 * The folder is there whole or not at all. Throws CommandError for a name that is none, and where the folder cannot be made.
 */
export async function scaffold({ language, name, place, root }: Scaffold): Promise<readonly string[]> {
  requireName(name);
  const folder = path.join(place, name);
  try {
    await requireFree(folder);
    const aside = path.join(place, `.${name}.${process.pid}.new`);
    try {
      await mkdir(aside);
      await fill(aside, { language, name, root });
      const commands = commandsIn(await readFile(path.join(aside, 'README.md'), 'utf8'));
      await rename(aside, folder);
      return commands;
    } finally {
      await rm(aside, { recursive: true, force: true });
    }
  } catch (err) {
    if (err instanceof CommandError) throw err;
    throw new CommandError(`cannot create ${folder}: ${messageOf(err)}`);
  }
}

/** Throws CommandError unless the name can be that of a folder, a Go module, an npm package and a MachineClass. */
export function requireName(name: string): void {
  if (TAKEN.test(name)) throw new CommandError(`${name} is reserved in the folder of a driver; choose another name`);
  if (/^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name)) return;
  throw new CommandError(
    `${JSON.stringify(name)} is not a valid driver name: expected up to 63 lower case letters, digits and dashes, such as acme-driver; ` +
      'the folder is created in the current directory',
  );
}

/** The first commands that a page tells to type. */
export function commandsIn(page: string): readonly string[] {
  return /```sh\n([^]*?)\n```/.exec(page)?.[1]?.split('\n') ?? [];
}

/** Throws CommandError unless nothing, or an empty folder, is there. */
export async function requireFree(folder: string): Promise<void> {
  const entries = await readdir(folder).catch((err: NodeJS.ErrnoException) => {
    if (err.code === 'ENOENT') return [];
    if (err.code === 'ENOTDIR') throw new CommandError(`${folder} is a file; choose another name, or remove it`);
    throw err;
  });
  if (entries.length > 0) throw new CommandError(`${folder} is not empty; choose another name, or remove it`);
}

/** Copies the example, what all of them share, and the contract. */
async function fill(folder: string, { language, name, root }: Omit<Scaffold, 'place'>): Promise<void> {
  const example = path.join(root, 'examples/drivers', language);
  await copyExample(example, folder);
  await copyExample(path.join(root, 'examples/drivers/shared'), folder);
  const packed = path.join(folder, PACKED_GITIGNORE);
  if (existsSync(packed)) await rename(packed, path.join(folder, '.gitignore'));
  await giveName(folder, name);
  await cp(path.join(root, CONTRACT), path.join(folder, CONTRACT));
  if (language === 'typescript') await putPackage(root, path.join(folder, BUILT_PACKAGE));
}

/** Copies what belongs to an example: all but what its .gitignore names, which is what building and running it leaves. */
export async function copyExample(from: string, to: string): Promise<void> {
  const ignored = await readFile(path.join(from, '.gitignore'), 'utf8').catch(() => '');
  const left = new Set(ignored.split('\n').map((line) => path.join(from, line.replace(/\/$/, ''))));
  await cp(from, to, { recursive: true, filter: (source) => source === from || !left.has(source) });
}

async function giveName(folder: string, name: string): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = path.join(entry.parentPath, entry.name);
    const text = await readFile(file, 'utf8');
    if (text.includes(EXAMPLE_NAME)) await writeFile(file, text.replaceAll(EXAMPLE_NAME, name));
  }
}

/** A checkout builds the package; a bundle has it. */
async function putPackage(root: string, folder: string): Promise<void> {
  const built = path.join(root, BUILT_PACKAGE);
  if (existsSync(built)) return await cp(built, folder, { recursive: true });
  await promisify(execFile)(process.execPath, [path.join(root, 'hack/driver-package/main.ts'), folder], { cwd: root });
}
