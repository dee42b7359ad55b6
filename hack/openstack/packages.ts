import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

import { messageOf } from '../../pkg/driver/errno.ts';
import { withLock } from '../control-plane/build-lock.ts';
import { cacheDirectory } from '../control-plane/user-directories.ts';

/*
 * The services of OpenStack as Debian 12 has them: apt downloads the packages from wherever this machine gets its own, and they are
 * unpacked into the user's cache. Nothing is installed, and no root is needed. They run with the machine's own Python.
 */
const PACKAGES = [
  'python3-keystone',
  'python3-glance',
  'python3-placement',
  'python3-nova',
  'python3-neutron',
  'python3-cinder',
  'python3-fixtures',
];
/** What a process of this machine cannot take from elsewhere: its C library, its shell and what they are configured by. */
const OF_THE_MACHINE = /^(?:libc6|libc-bin|base-files|bash|coreutils|dash|dpkg|libperl[^_]*|perl[^_]*)_/;
/** What only people read. */
const UNREAD = ['usr/share/doc', 'usr/share/locale', 'usr/share/man'];
/** The Python that these packages are for. */
export const PYTHON = '/usr/bin/python3';

const run = promisify(execFile);

/** The level cannot run here; the message says why, in one sentence. */
export class NoOpenStackError extends Error {
  override readonly name = 'NoOpenStackError';
}

/** Why there can be no OpenStack on a machine with this /etc/os-release and these files; undefined when there can be. */
export function obstacle(osRelease: string, isThere: (path: string) => boolean): string | undefined {
  const isDebian12 = /^ID=debian$/m.test(osRelease) && /^VERSION_ID="12"$/m.test(osRelease);
  if (!isDebian12) return 'its services are taken from Debian 12, and this is another system';
  const missing = ['/usr/bin/apt-get', '/usr/bin/dpkg-deb', PYTHON].find((path) => !isThere(path));
  return missing === undefined ? undefined : `its services need ${missing}, which is not here`;
}

/**
 * The folder with the unpacked packages, downloaded at the first time (120 MB, half a minute). Throws NoOpenStackError where the
 * machine is none that can have them, or apt does not get them.
 */
export async function openStackPackages(log: (line: string) => void): Promise<string> {
  const reason = obstacle(existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '', existsSync);
  if (reason !== undefined) throw new NoOpenStackError(reason);
  const parent = join(dirname(cacheDirectory(process.env)), 'openstack');
  const folder = join(parent, createHash('sha256').update(PACKAGES.join()).digest('hex').slice(0, 12));
  mkdirSync(parent, { recursive: true });
  await withLock(join(parent, 'lock'), async () => {
    if (existsSync(folder)) return;
    log('downloading the packages of OpenStack');
    const aside = mkdtempSync(join(parent, 'new-'));
    try {
      await download(aside);
      await unpack(aside);
      renameSync(aside, folder);
    } catch (err) {
      throw new NoOpenStackError(`apt did not deliver its packages (${firstLine(messageOf(err))})`, { cause: err });
    } finally {
      rmSync(aside, { recursive: true, force: true });
    }
  });
  return folder;
}

async function download(folder: string): Promise<void> {
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
    ['-qq', '-y', ...options, '--no-install-recommends', '--download-only', 'install', ...PACKAGES],
    {
      maxBuffer: 64e6,
    },
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
