import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import { promisify } from 'node:util';

import { describeWait, type LockHolder, type Note, withLock } from './build-lock.ts';
import { ControlPlaneError, explainFileError } from './error.ts';
import { errnoOf } from './errno.ts';
import { BINARIES_VARIABLE, findGiven } from './given-binaries.ts';
import { goBuild, type BuildProgress } from './go-build.ts';
import { platformOf } from './platform-of.ts';
import {
  buildName,
  isAtLeast,
  parseVersion,
  pinnedVersion,
  programSpec,
  type ProgramName,
  type ProgramSpec,
} from './programs.ts';
import { cacheDirectory, type Environment } from './user-directories.ts';

const execute = promisify(execFile);
const VERSION_TIMEOUT_MS = 20_000;

/** A program that can be started. */
export interface Program {
  readonly name: ProgramName;
  readonly path: string;
  readonly version: string;
  readonly source: 'MACHINIST_BINARIES' | 'KUBEBUILDER_ASSETS' | 'PATH' | 'cache' | 'build';
}

/** Where programs are looked for and who is told about it. */
export interface BinariesOptions {
  /** `process.env` unless told otherwise. */
  readonly env?: Environment;
  /** Told about builds; they take minutes. */
  readonly progress?: (event: BuildProgress) => void;
  /** Told in one line about downloads, and before a build why a program that is there was not taken. */
  readonly log?: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Finds a program: what MACHINIST_BINARIES names, which is taken or refused; KUBEBUILDER_ASSETS, then PATH (both only if new enough), then this user's cache, then `go build` into that
 * cache. Two processes never build at once. Throws ControlPlaneError with the reason and the remedy.
 */
export async function resolveProgram(name: ProgramName, options: BinariesOptions = {}): Promise<Program> {
  const spec = programSpec(name);
  const env = options.env ?? process.env;
  const given = spec.source === undefined ? await takeGiven(spec, { ...options, env }) : undefined;
  if (given !== undefined) return given;
  const { found, refused } = spec.source === undefined ? await findElsewhere(spec, env) : NOWHERE;
  if (found !== undefined) return found;

  const path = cachePath(spec, env);
  const program = { name, path, version: pinnedVersion(spec) };
  if (isProgram(path)) return { ...program, source: 'cache' };
  for (const line of refused) options.log?.(line); // why a program that is there is built once more
  const built = await buildOnce(spec, path, { ...options, env });
  return { ...program, source: built ? 'build' : 'cache' };
}

/** Finds several programs, one after the other (a build uses all processors by itself). */
export async function resolvePrograms<N extends ProgramName>(
  names: readonly N[],
  options: BinariesOptions = {},
): Promise<Record<N, Program>> {
  const found: Partial<Record<N, Program>> = {};
  for (const name of names) found[name] = await resolveProgram(name, options);
  return found as Record<N, Program>; // each name was just set
}

/** One line on what is taken from where: "using etcd 3.6.16, kubectl 1.36.3 from /path; kubemark 1.36.3 from the cache". */
export function describePrograms(programs: readonly Program[]): string {
  const byPlace = new Map<string, string[]>();
  for (const { name, version, path, source } of programs) {
    const isOwn = source === 'cache' || source === 'build';
    const place = isOwn ? 'the cache' : `${dirname(path)}${source === 'PATH' ? ' (PATH)' : ''}`;
    byPlace.set(place, [...(byPlace.get(place) ?? []), `${name} ${version}`]);
  }
  return `using ${[...byPlace].map(([place, those]) => `${those.join(', ')} from ${place}`).join('; ')}`;
}

/** Where a built program is kept: one folder per version and platform. */
export function cachePath(spec: ProgramSpec, env: Environment): string {
  const folder = `${buildName(spec)}-${process.platform}-${process.arch}`;
  return join(cacheDirectory(env), folder, spec.name);
}

/** True when this process built it, false when another one did so meanwhile. */
async function buildOnce(
  spec: ProgramSpec,
  path: string,
  options: BinariesOptions & { env: Environment },
): Promise<boolean> {
  if (process.platform === 'win32') {
    throw new ControlPlaneError(
      'unsupported-platform',
      `${spec.name} cannot be run on Windows: use Linux, macOS or WSL.`,
    );
  }
  const progress = options.progress ?? (() => undefined);
  const onWait = (holder: LockHolder): void => {
    const message = describeWait(holder, 'builds the control plane');
    progress({ phase: 'waiting', program: spec.name, version: pinnedVersion(spec), elapsedMs: 0, message });
  };
  const build = async (note: Note): Promise<boolean> => {
    if (isProgram(path)) return false;
    const report = (event: BuildProgress): void => {
      note(event.message);
      progress(event);
    };
    await goBuild(spec, path, { env: options.env, progress: report, signal: options.signal });
    return true;
  };
  const lock = join(cacheDirectory(options.env), 'build.lock');
  try {
    return await withLock(lock, build, { signal: options.signal, onWait });
  } catch (err) {
    throw explainFileError(err);
  }
}

/** What the user named is taken or refused, and never passed over in silence. */
async function takeGiven(
  spec: ProgramSpec,
  { env, log = () => undefined, signal }: BinariesOptions & { env: Environment },
): Promise<Program | undefined> {
  const path = await findGiven(spec.name, { env, log, signal });
  if (path === undefined) return undefined;
  const { version, because } = await examine(spec, path);
  if (version !== undefined) return { name: spec.name, path, version, source: 'MACHINIST_BINARIES' };
  throw new ControlPlaneError(
    'binaries-unfit',
    `${path} cannot be used: ${because}. Put a program for ${process.platform} ${process.arch} there, ${atLeast(spec)}, or start without --binaries and ${BINARIES_VARIABLE} to have it built.`,
  );
}

interface Elsewhere {
  readonly found?: Program;
  /** One line for each program that is there but was not taken. */
  readonly refused: readonly string[];
}

/** Of programs of ours. */
const NOWHERE: Elsewhere = { refused: [] };

async function findElsewhere(spec: ProgramSpec, env: Environment): Promise<Elsewhere> {
  const refused = new Map<string, string>();
  const assets = env['KUBEBUILDER_ASSETS'] ?? '';
  if (assets !== '' && !existsSync(assets))
    refused.set(assets, `KUBEBUILDER_ASSETS is ${assets}, which does not exist`);
  for (const { source, folder } of placesOf(env)) {
    const path = join(folder, spec.name);
    // Of what lies in PATH only programs count; what was prepared for this purpose is worth a word.
    if (source === 'PATH' ? !isProgram(path) : !existsSync(path)) continue;
    if (refused.has(realpathSync(path))) continue;
    const { version, because } = await examine(spec, path);
    if (version !== undefined) return { found: { name: spec.name, path, version, source }, refused: [] };
    refused.set(realpathSync(path), `not using ${path} from ${source}: ${because}`);
  }
  return { refused: [...refused.values()] };
}

function placesOf(env: Environment): { source: 'KUBEBUILDER_ASSETS' | 'PATH'; folder: string }[] {
  const assets = env['KUBEBUILDER_ASSETS'];
  const onPath = (env['PATH'] ?? '').split(':').filter((folder) => isAbsolute(folder));
  return [
    ...(assets === undefined || assets === '' ? [] : [{ source: 'KUBEBUILDER_ASSETS' as const, folder: assets }]),
    ...onPath.map((folder) => ({ source: 'PATH' as const, folder })),
  ];
}

/** The version of a program that can be used here; otherwise why it cannot. */
async function examine(
  spec: ProgramSpec,
  path: string,
): Promise<
  { readonly version: string; readonly because?: never } | { readonly version?: never; readonly because: string }
> {
  if (!statSync(path).isFile() || statSync(path).size === 0) return { because: 'it is empty, or not a file' };
  const [platform, own] = [platformOf(path), `${process.platform} ${process.arch}`];
  if (platform !== undefined && platform !== own)
    return { because: `it was built for ${platform}, and this host is ${own}` };
  if (!isProgram(path)) return { because: `it is not executable (chmod +x ${path})` };
  const version = await versionOf(spec, path);
  if (version === undefined) return { because: `it does not report its version, and ${atLeast(spec)} is needed` };
  return isAtLeast(version, spec.oldest)
    ? { version }
    : { because: `it is ${version}, and ${atLeast(spec)} is needed` };
}

function atLeast({ oldest }: ProgramSpec): string {
  return `${oldest.join('.')} or newer`;
}

/** What the program says of itself; undefined when it does not run. */
async function versionOf(spec: ProgramSpec, path: string): Promise<string | undefined> {
  try {
    const { stdout } = await execute(path, [...spec.versionArgs], { timeout: VERSION_TIMEOUT_MS });
    return parseVersion(stdout);
  } catch {
    return undefined; // built for another platform, or something else by that name: the caller reports it
  }
}

/** A file that can be executed and is not the empty rest of a full disk. */
function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    const stat = statSync(path);
    return stat.isFile() && stat.size > 0;
  } catch (err) {
    if (errnoOf(err) !== undefined) return false;
    throw err;
  }
}
