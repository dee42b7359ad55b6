import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

import { messageOf } from '../../pkg/driver/errno.ts';
import { withLock } from '../control-plane/build-lock.ts';
import { cacheDirectory } from '../control-plane/user-directories.ts';

/*
 * Packages of Debian for tests: apt downloads them, with all that they need, from wherever this machine gets its own, and they are unpacked
 * into the user's cache. Nothing is installed, and no root is needed.
 */

/** What a process of this machine cannot take from elsewhere: its C library, its shell and what they are configured by. */
const OF_THE_MACHINE = /^(?:libc6|libc-bin|base-files|bash|coreutils|dash|dpkg|libperl[^_]*|perl[^_]*)_/;
/** What only people read. */
const UNREAD = ['usr/share/doc', 'usr/share/locale', 'usr/share/man'];
/** What the download is done with. */
export const TOOLS: readonly string[] = ['/usr/bin/apt-get', '/usr/bin/dpkg-deb'];

const run = promisify(execFile);

/** apt did not deliver; the message says why, in one sentence. */
export class NoPackagesError extends Error {
  override readonly name = 'NoPackagesError';
}

/**
 * The folder into which these packages are unpacked, below `root`; downloaded at the first time, which is logged. `name` tells the folder from
 * those of others. Throws NoPackagesError.
 */
export async function debianPackages(
  name: string,
  packages: readonly string[],
  log: (line: string) => void,
): Promise<string> {
  const parent = join(dirname(cacheDirectory(process.env)), name);
  const folder = join(parent, createHash('sha256').update(packages.join()).digest('hex').slice(0, 12));
  mkdirSync(parent, { recursive: true });
  await withLock(join(parent, 'lock'), async () => {
    if (existsSync(folder)) return;
    log(`downloading the packages of ${name}`);
    const aside = mkdtempSync(join(parent, 'new-'));
    try {
      await download(aside, packages);
      await unpack(aside);
      renameSync(aside, folder);
    } catch (err) {
      throw new NoPackagesError(`apt did not deliver its packages (${firstLine(messageOf(err))})`, { cause: err });
    } finally {
      rmSync(aside, { recursive: true, force: true });
    }
  });
  return folder;
}

async function download(folder: string, packages: readonly string[]): Promise<void> {
  // With an empty list of what is installed apt names every package that is needed, whatever this machine has.
  writeFileSync(join(folder, 'status'), '');
  mkdirSync(join(folder, 'debs', 'partial'), { recursive: true });
  const options = [
    'Debug::NoLocking=true',
    `Dir::State::status=${folder}/status`,
    `Dir::Cache::archives=${folder}/debs`,
    'APT::Sandbox::User=root',
  ].flatMap((option) => ['-o', option]);
  await run(
    'apt-get',
    ['-qq', '-y', ...options, '--no-install-recommends', '--download-only', 'install', ...packages],
    { maxBuffer: 64e6 },
  );
}

async function unpack(folder: string): Promise<void> {
  const debs = readdirSync(join(folder, 'debs')).filter((name) => name.endsWith('.deb') && !OF_THE_MACHINE.test(name));
  for (const deb of debs) await run('dpkg-deb', ['-x', join(folder, 'debs', deb), join(folder, 'root')]);
  for (const unread of ['debs', 'status', ...UNREAD.map((path) => join('root', path))])
    rmSync(join(folder, unread), { recursive: true, force: true });
}

function firstLine(text: string): string {
  return (text.split('\n').find((line) => /^[EW]:/.test(line)) ?? text.split('\n')[0] ?? '').slice(0, 200);
}
