import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

import { ControlPlaneError } from './error.ts';
import { errnoOf, messageOf } from './errno.ts';
import type { LedgerRun } from './ledger.ts';

const START_DEADLINE_MS = 60_000;
const STOP_DEADLINE_MS = 10_000;
const POLL_MS = 100;
const TAIL_LINES = 12;
const TAIL_BYTES = 16_384;

/** What a component is made of. */
export interface ComponentOptions {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly directory: string;
  /** Its output is appended to this file, over all its starts. */
  readonly logFile: string;
  readonly run: LedgerRun;
  /** Whether it serves; may reject, which counts as not yet. Called again and again until it says yes. */
  readonly isReady: () => Promise<boolean>;
  /** Told when it ends although nobody asked it to. */
  readonly log: (line: string) => void;
}

/**
 * One program of the control plane as a process. It can be stopped, killed, paused (SIGSTOP) and started again with the same
 * arguments, ports and data, which is what fault tests do. It has a process group of its own, so that Ctrl-C reaches only
 * the parent, which then stops it in order.
 */
export class Component {
  readonly name: string;
  readonly logFile: string;
  readonly #options: ComponentOptions;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #isExpectedToEnd = true;
  #onUnexpectedEnd: () => void = () => undefined;
  /** Where in the log file the output of the present start begins. */
  #outputOffset = 0;

  constructor(options: ComponentOptions) {
    this.name = options.name;
    this.logFile = options.logFile;
    this.#options = options;
  }

  /** The running process; undefined when it is not running. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /**
   * Starts it and resolves when it serves. Throws ControlPlaneError `start-failed` (or `address-in-use`, `disk-full`) with its
   * last lines, or the signal's reason; it then does not run.
   */
  async start(signal?: AbortSignal): Promise<void> {
    if (this.#child !== undefined) throw new Error(`starting ${this.name}: it runs already`);
    signal?.throwIfAborted();
    const child = this.#spawn();
    const startedMs = performance.now();
    let lastAnswer = 'it does not answer';
    while (performance.now() - startedMs < START_DEADLINE_MS) {
      if (this.#child !== child) throw this.#startFailed('it ended');
      try {
        if (await this.#options.isReady()) {
          this.#isExpectedToEnd = false;
          return;
        }
        lastAnswer = 'it is not ready';
      } catch (err) {
        lastAnswer = messageOf(err);
      }
      if (signal?.aborted === true) {
        await this.stop('SIGKILL');
        throw signal.reason as Error;
      }
      await sleep(POLL_MS);
    }
    await this.stop('SIGKILL');
    throw this.#startFailed(`it was not ready after ${START_DEADLINE_MS / 1000} s (${lastAnswer})`);
  }

  /** Sends a signal and waits until it has ended; after 10 s, SIGKILL. Does nothing when it is not running. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.kill(signal);
    if (signal !== 'SIGKILL') {
      const deadline = setTimeout(() => this.kill('SIGKILL'), STOP_DEADLINE_MS);
      await this.#ended;
      clearTimeout(deadline);
    }
    await this.#ended;
  }

  /** Sends a signal and does not wait: SIGKILL is a crash, SIGSTOP and SIGCONT a pause. */
  kill(signal: NodeJS.Signals): void {
    if (this.#child === undefined) return;
    if (signal !== 'SIGSTOP' && signal !== 'SIGCONT') this.#isExpectedToEnd = true;
    this.#child.ref(); // anyone who waits for the end must not end first
    this.#child.kill(signal);
  }

  /** Calls `listener`, the last one given, when it ends although nobody asked it to; that may start it again. */
  onUnexpectedEnd(listener: () => void): void {
    this.#onUnexpectedEnd = listener;
  }

  /** Resolves when it has ended, at once when it is not running. */
  async ended(): Promise<void> {
    this.#child?.ref();
    await this.#ended;
  }

  #spawn(): ChildProcess {
    const { program, args, directory, run, log, logFile } = this.#options;
    const output = openSync(logFile, 'a', 0o600);
    this.#outputOffset = fstatSync(output).size;
    const child = spawn(program, args, { cwd: directory, stdio: ['ignore', output, output], detached: true });
    closeSync(output);
    child.unref();
    this.#child = child;
    this.#isExpectedToEnd = true; // until it serves: start itself says how it ended
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ended = promise;
    const onEnd = (how: string): void => {
      if (this.#child !== child) return;
      this.#child = undefined;
      if (child.pid !== undefined) run.unregister(child.pid);
      resolve();
      if (this.#isExpectedToEnd) return;
      log(`${this.name} ended (${how}); its output is in ${logFile}`);
      this.#onUnexpectedEnd();
    };
    child.once('exit', (code, signal) => onEnd(signal ?? `code ${code}`));
    child.once('error', (err) => {
      if (child.pid === undefined) onEnd(messageOf(err));
    });
    if (child.pid !== undefined) run.register(this.name, child.pid);
    return child;
  }

  #startFailed(how: string): ControlPlaneError {
    const output = outputSince(this.logFile, this.#outputOffset);
    const tail = output.trim().split('\n').slice(-TAIL_LINES).join('\n');
    if (/no space left on device/i.test(output)) {
      const remedy = `free some room (its directory is ${this.#options.directory}) and try again`;
      return new ControlPlaneError('disk-full', `The disk is full, ${this.name} cannot start: ${remedy}.`);
    }
    const code = /address already in use/i.test(output) ? 'address-in-use' : 'start-failed';
    return new ControlPlaneError(code, `starting ${this.name}: ${how}; its last lines were:\n${tail}`);
  }
}

/** What was written to a log file since `offset`, at most its last 16 KB; empty when there is no such file. */
function outputSince(path: string, offset: number): string {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return '';
    throw err;
  }
  try {
    const { size } = fstatSync(file);
    const from = Math.max(offset, size - TAIL_BYTES);
    const buffer = Buffer.alloc(Math.max(size - from, 0));
    readSync(file, buffer, 0, buffer.length, from);
    return buffer.toString();
  } finally {
    closeSync(file);
  }
}
