import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';

import { describeWait, withLock } from './build-lock.ts';
import { type Checksum, checksumIn, namesIn, parseChecksum } from './checksum.ts';
import { downloadFile, type DownloadOptions, downloadText, shownURL } from './download.ts';
import { ControlPlaneError } from './error.ts';
import type { ProgramName } from './programs.ts';
import { isTrustedURL } from './trusted-url.ts';
import { unpack } from './unpack.ts';
import { cacheDirectory, type Environment } from './user-directories.ts';

/** Folder or URL with programs that were built elsewhere. */
export const BINARIES_VARIABLE = 'MACHINIST_BINARIES';
/** What an archive at such a URL must hash to. */
export const CHECKSUM_VARIABLE = 'MACHINIST_BINARIES_CHECKSUM';

/** What envtest brings along: folders and archives without one of these were not meant to be given. */
const REQUIRED: readonly ProgramName[] = ['etcd', 'kube-apiserver', 'kubectl'];
const INDEXES = ['SHA256SUMS', 'SHA512SUMS'] as const;
const SIDECARS = ['.sha256', '.sha512'] as const;

export interface GivenOptions {
  readonly env: Environment;
  readonly log: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Where the environment says a program lies, as a file that may still be unfit; undefined when the environment names no place, or that place
 * may lack the program. Downloads what is at a URL once, into this user's cache. Throws ControlPlaneError, or the signal's reason.
 */
export async function findGiven(name: ProgramName, options: GivenOptions): Promise<string | undefined> {
  const source = options.env[BINARIES_VARIABLE] ?? '';
  if (source === '') return undefined;
  const folder = isURL(source) ? await downloaded(new URL(source), name, options) : existing(resolve(source));
  const file = join(folder, name);
  if (existsSync(file)) return file;
  if (!REQUIRED.includes(name)) return undefined;
  throw new ControlPlaneError(
    'binaries-unfit',
    `There is no ${name} in ${source}: name a folder, an archive or a URL that has ${REQUIRED.join(', ')}, such as what setup-envtest installs.`,
  );
}

function isURL(source: string): boolean {
  return /^https?:\/\//.test(source);
}

function existing(folder: string): string {
  if (existsSync(folder) && statSync(folder).isDirectory()) return folder;
  throw new ControlPlaneError(
    'binaries-unfit',
    `${folder} is not a folder: --binaries and ${BINARIES_VARIABLE} take a folder with ${REQUIRED.join(', ')} (unpack an archive first), or an http(s) URL.`,
  );
}

/** The folder of the cache that holds what was downloaded from there. */
async function downloaded(url: URL, name: ProgramName, { env, log, signal }: GivenOptions): Promise<string> {
  const checksum = env[CHECKSUM_VARIABLE] ?? '';
  const isArchive = /\.(?:tar\.gz|tgz)$/.test(url.pathname);
  requireTrust(url, checksum, isArchive);
  const options: DownloadOptions = { log, signal, onRedirect: (to) => requireProof(to, checksum) };
  const downloads = join(cacheDirectory(env), 'downloads');
  const key = createHash('sha256').update(`${url.href}\n${checksum}`).digest('hex').slice(0, 16);
  const folder = join(downloads, key);
  const isThere = (): boolean =>
    isArchive ? existsSync(folder) : existsSync(join(folder, name)) || existsSync(absence(folder, name));
  if (isThere()) return folder;

  await withLock(
    `${folder}.lock`,
    async () => {
      if (isThere()) return; // by another process meanwhile
      // Of processes that were killed: who holds the lock is alone here.
      for (const left of readdirSync(downloads).filter((one) => one.startsWith(`${key}.tmp`)))
        rmSync(join(downloads, left), { recursive: true, force: true });
      const aside = join(downloads, `${key}.tmp`);
      mkdirSync(aside);
      try {
        if (isArchive) await downloadArchive({ url, checksum, aside, folder, options });
        else await downloadProgram({ url, name, aside, folder, options });
      } finally {
        rmSync(aside, { recursive: true, force: true });
      }
    },
    { signal, onWait: (holder) => log(describeWait(holder, `downloads ${shownURL(url)}`)) },
  );
  return folder;
}

function requireTrust(url: URL, checksum: string, isArchive: boolean): void {
  if (url.username !== '') {
    throw new ControlPlaneError(
      'download-failed',
      `The URL of the binaries has a user name, which is not supported: remove it.`,
    );
  }
  if (checksum !== '' && !isArchive) {
    throw new ControlPlaneError(
      'checksum-missing',
      `The checksum is of an archive, and ${shownURL(url)} is a folder (it does not end with .tar.gz): serve ${INDEXES.join(' or ')} beside its programs.`,
    );
  }
  if (checksum !== '' && parseChecksum(checksum) === undefined) {
    throw new ControlPlaneError(
      'checksum-missing',
      `"${checksum}" is not a checksum: sha256:HEX or sha512:HEX is expected, in full.`,
    );
  }
  requireProof(url, checksum);
}

/** Checksums from a server that anyone on the way can play prove nothing, wherever the way leads. */
function requireProof(url: URL, checksum: string): void {
  if (checksum !== '' || isTrustedURL(url)) return;
  throw new ControlPlaneError(
    'checksum-missing',
    `${shownURL(url)} is not encrypted, so its checksums prove nothing: use https, or name the checksum with --binaries-checksum or ${CHECKSUM_VARIABLE}.`,
  );
}

interface Download {
  readonly url: URL;
  readonly checksum: string;
  /** A folder that is removed at the end. */
  readonly aside: string;
  /** Where the result goes, in one step. */
  readonly folder: string;
  readonly options: DownloadOptions;
}

async function downloadArchive({ url, checksum, aside, folder, options }: Download): Promise<void> {
  const { log } = options;
  const wanted = parseChecksum(checksum) ?? (await publishedChecksum(url, options));
  log(`downloading ${shownURL(url)}…`);
  const archive = join(aside, 'archive.tar.gz');
  await downloadFile(url.href, archive, wanted, options);
  const programs = join(aside, 'programs');
  mkdirSync(programs);
  const found = await unpack(archive, programs, options.signal);
  if (found.length === 0) {
    throw new ControlPlaneError(
      'binaries-unfit',
      `${shownURL(url)} has none of the programs: an archive like envtest's, with ${REQUIRED.join(', ')}, is expected.`,
    );
  }
  renameSync(programs, folder);
  log(`downloaded ${found.join(', ')}; ${wanted.algorithm} matches`);
}

/** From a file beside the archive. */
async function publishedChecksum(url: URL, options: DownloadOptions): Promise<Checksum> {
  const name = basename(url.pathname);
  const places = [
    ...SIDECARS.map((end) => `${url.pathname}${end}`),
    ...INDEXES.map((index) => `${url.pathname.slice(0, -name.length)}${index}`),
  ];
  for (const path of places) {
    const text = await downloadText(beside(url, path), options);
    const checksum = text === undefined ? undefined : checksumIn(text, name);
    if (checksum !== undefined) return checksum;
  }
  throw new ControlPlaneError(
    'checksum-missing',
    `There is no checksum for ${shownURL(url)}: name it with --binaries-checksum or ${CHECKSUM_VARIABLE}, or serve ${name}.sha256, ${name}.sha512, ${INDEXES.join(' or ')} beside it.`,
  );
}

/** One program of a folder that is served, if its index has it. */
async function downloadProgram({
  url,
  name,
  aside,
  folder,
  options,
}: Omit<Download, 'checksum'> & { readonly name: ProgramName }): Promise<void> {
  const directory = url.pathname.replace(/\/?$/, '/');
  const checksum = await indexedChecksum(url, directory, name, options);
  mkdirSync(folder, { recursive: true });
  if (checksum === undefined) return writeFileSync(absence(folder, name), '');
  const program = beside(url, `${directory}${name}`);
  options.log(`downloading ${shownURL(program)}…`);
  const file = join(aside, name);
  await downloadFile(program, file, checksum, options);
  chmodSync(file, 0o755);
  renameSync(file, join(folder, name));
  options.log(`downloaded ${name}; ${checksum.algorithm} matches`);
}

/** From the index of a folder that is served, or a file of the program's own; undefined when the index lacks the program. */
async function indexedChecksum(
  url: URL,
  directory: string,
  name: string,
  options: DownloadOptions,
): Promise<Checksum | undefined> {
  let hasIndex = false;
  for (const path of [...INDEXES, ...SIDECARS.map((end) => `${name}${end}`)]) {
    const text = await downloadText(beside(url, `${directory}${path}`), options);
    const checksum = text === undefined ? undefined : checksumIn(text, name);
    if (checksum !== undefined) return checksum;
    hasIndex ||= text !== undefined && namesIn(text).length > 0;
  }
  if (hasIndex || !REQUIRED.includes(name as ProgramName)) return undefined;
  throw new ControlPlaneError(
    'checksum-missing',
    `There are no checksums at ${shownURL(url)}: serve ${INDEXES.join(' or ')} beside the programs, as sha256sum and sha512sum write them, or name an archive (.tar.gz).`,
  );
}

/** Says that the server was asked, and has no such program. */
function absence(folder: string, name: string): string {
  return join(folder, `${name}.absent`);
}

/** Another file of the same server; tokens in the query stay. */
function beside(url: URL, path: string): string {
  const other = new URL(url);
  other.pathname = path;
  return other.href;
}
