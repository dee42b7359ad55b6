import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { performance } from 'node:perf_hooks';

import { ControlPlaneError } from './error.ts';
import { errnoOf } from './errno.ts';
import { isAtLeast, moduleDirectory, parseVersion, pinnedVersion, type ProgramSpec } from './programs.ts';
import type { Environment } from './user-directories.ts';

/** The pinned modules say `go 1.26.0`. */
const OLDEST_GO = [1, 26] as const;
const TICK_MS = 10_000;
/** What can be done instead of building. */
const OR_ASSETS =
  'or take it from elsewhere (--binaries, MACHINIST_BINARIES or KUBEBUILDER_ASSETS; see docs/development/control-plane.md)';

/** Told when a build starts, each 10 s while it runs, and when it is done. */
export interface BuildProgress {
  readonly phase: 'building' | 'built' | 'waiting';
  readonly program: string;
  readonly version: string;
  readonly elapsedMs: number;
  /** One line for people. */
  readonly message: string;
}

/** How a build is run. */
export interface GoBuildOptions {
  readonly env: Environment;
  readonly progress: (event: BuildProgress) => void;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Builds a program with Go and puts it at `target` in one step: the file is there whole or not at all.
 * Throws ControlPlaneError (`go-missing`, `go-too-old`, `no-network`, `disk-full`, `build-failed`), or the signal's reason.
 */
export async function goBuild(spec: ProgramSpec, target: string, options: GoBuildOptions): Promise<void> {
  await requireGo(spec, options);
  const startedMs = performance.now();
  const report = (phase: BuildProgress['phase'], message: string): void =>
    options.progress({ phase, message, ...of(spec), elapsedMs: performance.now() - startedMs });
  const seconds = (): string => `${Math.round((performance.now() - startedMs) / 1000)} s`;

  report('building', `building ${label(spec)} with Go (${spec.buildTakes}, once)…`);
  const ticker = setInterval(() => report('building', `building ${label(spec)}… ${seconds()}`), TICK_MS);
  const aside = `${target}.${process.pid}.tmp`;
  try {
    makeRoom(dirname(target), spec);
    const { code, output } = await go(buildArgs(spec, aside), options, moduleDirectory(spec));
    if (code !== 0) throw explainBuildFailure(spec, output);
    chmodSync(aside, 0o755);
    renameSync(aside, target);
  } finally {
    clearInterval(ticker);
    rmSync(aside, { force: true });
  }
  report('built', `built ${label(spec)} in ${seconds()}`);
}

/** "kube-apiserver 1.36.3" */
function label(spec: ProgramSpec): string {
  return `${spec.name} ${pinnedVersion(spec)}`;
}

/** Turns Go's words into what is wrong and what helps. Decided by what Go and the kernel are known to print. */
function explainBuildFailure(spec: ProgramSpec, output: string): ControlPlaneError {
  const tail = output.trim().split('\n').slice(-15).join('\n');
  if (/no space left on device|disk quota exceeded/i.test(output)) {
    const remedy = 'free about 4 GB in the Go build cache and the cache folder (GOCACHE, XDG_CACHE_HOME) and try again';
    return new ControlPlaneError(
      'disk-full',
      `The disk is full while building ${label(spec)}: ${remedy}.`,
      cause(tail),
    );
  }
  if (NETWORK_FAILURE.test(output)) {
    const remedy = `check the network and GOPROXY and try again, ${OR_ASSETS}`;
    const message = `The Go modules of ${label(spec)} could not be downloaded: ${remedy}.`;
    return new ControlPlaneError('no-network', message, cause(tail));
  }
  const message = `Go could not build ${label(spec)}; its last words were:\n${tail}`;
  return new ControlPlaneError('build-failed', message);
}

const NETWORK_FAILURE =
  /dial tcp|dial udp|no such host|i\/o timeout|TLS handshake timeout|proxyconnect|connection (?:refused|reset)|network is unreachable|module lookup disabled|temporary failure in name resolution|Client\.Timeout exceeded/i;

function cause(tail: string): { cause: Error } {
  return { cause: new Error(tail) };
}

function of(spec: ProgramSpec): { program: string; version: string } {
  return { program: spec.name, version: pinnedVersion(spec) };
}

function buildArgs(spec: ProgramSpec, out: string): string[] {
  return [
    'build',
    '-mod=readonly',
    '-trimpath',
    '-buildvcs=false',
    ...(spec.tags === undefined ? [] : [`-tags=${spec.tags.join(',')}`]),
    '-ldflags',
    linkFlags(spec),
    '-o',
    out,
    spec.goPackage,
  ];
}

/** Without its version, Kubernetes' Go clients fail on "invalid semantic version". */
function linkFlags(spec: ProgramSpec): string {
  if (spec.module !== 'kubernetes') return '-s -w';
  const version = pinnedVersion(spec);
  const [major = '', minor = ''] = version.split('.');
  const values = { gitVersion: `v${version}`, gitMajor: major, gitMinor: minor };
  const sets = Object.entries(values).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`);
  return ['-s -w', ...sets].join(' ');
}

function makeRoom(directory: string, spec: ProgramSpec): void {
  try {
    mkdirSync(directory, { recursive: true });
  } catch (err) {
    if (errnoOf(err) === 'ENOSPC') throw explainBuildFailure(spec, 'no space left on device');
    throw err;
  }
}

/** Throws unless a Go that is new enough is on the PATH. */
async function requireGo(spec: ProgramSpec, options: GoBuildOptions): Promise<void> {
  const needed = `Go ${OLDEST_GO.join('.')} or newer`;
  let version: string | undefined;
  try {
    // Not in the module's folder: there an old Go only says that it is too old.
    const { output } = await go(['version'], options, '/');
    version = parseVersion(output.replace(/\bgo(?=\d)/, ''));
  } catch (err) {
    if (errnoOf(err) !== 'ENOENT') throw err;
    const message = `${label(spec)} was not found and cannot be built, because there is no Go: install ${needed}, ${OR_ASSETS}.`;
    throw new ControlPlaneError('go-missing', message);
  }
  if (version === undefined || !isAtLeast(version, OLDEST_GO)) {
    const message = `Go ${version ?? 'of unknown version'} is too old to build ${label(spec)}: install ${needed}, ${OR_ASSETS}.`;
    throw new ControlPlaneError('go-too-old', message);
  }
}

/** Runs go to its end and collects what it says; rejects when it cannot be started or the signal is aborted. */
function go(args: string[], { env, signal }: GoBuildOptions, cwd: string): Promise<{ code: number; output: string }> {
  return new Promise((resolve, reject) => {
    // The user's settings stay (proxy, cache), but nothing may lead to another target, workspace or compiler.
    const goEnv = { ...env, CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOWORK: 'off', GOOS: '', GOARCH: '' };
    const child = spawn('go', args, { cwd, env: goEnv, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const collect = (chunk: Buffer): void => {
      output = (output + chunk.toString()).slice(-20_000);
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    const onAbort = (): void => {
      child.kill('SIGINT'); // on which go, unlike on SIGTERM, removes its work folder
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted === true) onAbort();
    child.once('error', reject);
    child.once('close', (code) => {
      signal?.removeEventListener('abort', onAbort);
      if (signal?.aborted === true) reject(signal.reason as Error);
      else resolve({ code: code ?? 1, output });
    });
  });
}
