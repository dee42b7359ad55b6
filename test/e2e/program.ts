import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';

import { bundledEnv } from '../../hack/test/programs.ts';
import { eventually } from '../expect/eventually.ts';

/** The checkout: what the programs run from. */
export const ROOT = resolve(import.meta.dirname, '../..');

/** Where programs are started from. */
export interface Installation {
  /** The folder that holds `cmd/`. */
  readonly root: string;
  /** Of the entry points. */
  readonly extension: string;
  /** What its programs are started with. */
  readonly env?: Readonly<Record<string, string>>;
}

/** The checkout, as `npm run demo` starts its programs. */
export const SOURCES: Installation = { root: ROOT, extension: 'ts' };

/** Programs as the test command has bundled them, for tests that start many; without it, the sources. Only what hack/test/programs.ts names is there. */
export const BUNDLE: Installation = bundleIn(process.env['MACHINIST_TEST_PROGRAMS']);

function bundleIn(folder: string | undefined): Installation {
  return folder === undefined ? SOURCES : { root: folder, extension: 'js', env: bundledEnv(folder) };
}

/** What Node is started with to run a command. */
export function fileOf(command: string, { root, extension }: Installation): string {
  return join(root, 'cmd', command, `main.${extension}`);
}

/** How a program is started. */
export interface ProgramOptions {
  /** Added to the environment of the tests. */
  readonly env?: Readonly<Record<string, string>>;
  /** The folder that it is started in; the checkout unless told otherwise. */
  readonly cwd?: string;
  /** The sources unless told otherwise. */
  readonly installation?: Installation;
}

/** How a program ended. */
export interface Ending {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** One of the project's commands as a process, as a user starts it. Disposing kills it. */
export class Program implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  #stdout = '';
  #stderr = '';

  /** `command` is a folder of cmd/, or the way to another one from there. */
  constructor(command: string, args: readonly string[], options: ProgramOptions = {}) {
    const { env = {}, cwd = ROOT, installation = SOURCES } = options;
    this.#child = spawn(process.execPath, [fileOf(command, installation), ...args], {
      cwd,
      env: { ...process.env, ...installation.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child.stdout?.setEncoding('utf8').on('data', (chunk: string) => (this.#stdout += chunk));
    this.#child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (this.#stderr += chunk));
    this.#ended = once(this.#child, 'close');
  }

  /** Runs a command to its end. */
  static async run(command: string, args: readonly string[], options: ProgramOptions = {}): Promise<Ending> {
    await using program = new Program(command, args, options);
    return await program.ended();
  }

  /** What it has printed on standard output so far. */
  get stdout(): string {
    return this.#stdout;
  }

  /** Whether it runs. */
  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Waits until it has printed this. Fails at once when it ends before. */
  async says(what: string, timeoutMs: number): Promise<void> {
    const silent = (): string => `${what} on standard output:\n${this.#stdout}${this.#stderr}`;
    await eventually(() => this.#stdout.includes(what) || !this.isRunning, { timeoutMs, describe: silent });
    if (!this.#stdout.includes(what)) throw new Error(`it ended without ${silent()}`);
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Waits for its end. */
  async ended(): Promise<Ending> {
    await this.#ended;
    return { code: this.#child.exitCode, stdout: this.#stdout, stderr: this.#stderr };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.isRunning) return;
    this.kill('SIGKILL');
    await this.#ended;
  }
}
