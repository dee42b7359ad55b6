import { execFile } from 'node:child_process';
import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { promisify } from 'node:util';

import { withLock } from './build-lock.ts';
import { ControlPlaneError, explainFileError } from './error.ts';
import { errnoOf } from './errno.ts';
import { goBuild, type BuildProgress } from './go-build.ts';
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
  readonly source: 'KUBEBUILDER_ASSETS' | 'PATH' | 'cache' | 'build';
}

/** Where programs are looked for and who is told about it. */
export interface BinariesOptions {
  /** `process.env` unless told otherwise. */
  readonly env?: Environment;
  /** Told about builds; they take minutes. */
  readonly progress?: (event: BuildProgress) => void;
  /** Told, before a build, in one line why a program that is there was not taken. */
  readonly log?: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Finds a program: KUBEBUILDER_ASSETS, then PATH (both only if new enough), then this user's cache, then `go build` into that
 * cache. Two processes never build at once. Throws ControlPlaneError with the reason and the remedy.
 */
export async function resolveProgram(name: ProgramName, options: BinariesOptions = {}): Promise<Program> {
  const spec = programSpec(name);
  const env = options.env ?? process.env;
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
  const onWait = (holder: number): void => {
    const message = `waiting for process ${holder}, which builds the control plane already…`;
    progress({ phase: 'waiting', program: spec.name, version: pinnedVersion(spec), elapsedMs: 0, message });
  };
  const build = async (): Promise<boolean> => {
    if (isProgram(path)) return false;
    await goBuild(spec, path, { env: options.env, progress, signal: options.signal });
    return true;
  };
  const lock = join(cacheDirectory(options.env), 'build.lock');
  try {
    return await withLock(lock, build, { signal: options.signal, onWait });
  } catch (err) {
    throw explainFileError(err);
  }
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
  for (const { source, folder } of placesOf(env)) {
    const path = join(folder, spec.name);
    if (!isProgram(path) || refused.has(realpathSync(path))) continue;
    const version = await versionOf(spec, path);
    if (version !== undefined && isAtLeast(version, spec.oldest)) {
      return { found: { name: spec.name, path, version, source }, refused: [] };
    }
    const because = version === undefined ? 'it does not tell its version' : `it is ${version}`;
    const needed = `${spec.oldest.join('.')} or newer is needed`;
    refused.set(realpathSync(path), `not using ${path} from ${source}: ${because}, and ${needed}`);
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
