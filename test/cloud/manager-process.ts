import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

import { freePort } from '../../hack/control-plane/ports.ts';
import { halt } from '../processes/halt.ts';
import { programFile } from '../processes/program-file.ts';
import { flagsOf, type RunOptions } from './manager.ts';

/** As deployed: without it V8 holds on to garbage that looks like a leak. */
const LEAN = '--max-semi-space-size=2';

/** How it is run. */
export interface ManagerProcessOptions extends Omit<RunOptions, 'hooks' | 'log'> {
  readonly heapMB?: number;
}

/** `machinist run` as a process of its own. */
export class ManagerProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #output: string[] = [];

  private constructor(child: ChildProcess) {
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => this.#output.push(text));
    }
  }

  /** Resolves at once; it works a little later. `heapMB`: ends it when what it must keep grows beyond that. */
  static async start(options: ManagerProcessOptions): Promise<ManagerProcess> {
    const { heapMB } = options;
    const given = flagsOf(options);
    if (!given.has('port')) given.set('port', String(await freePort()));
    const flags = [...given].map(([name, value]) => `--${name}=${value}`);
    const node = [LEAN, ...(heapMB === undefined ? [] : [`--max-old-space-size=${heapMB}`])];
    const { file, env } = programFile('machinist');
    const child = spawn(process.execPath, [...node, file, 'run', ...flags], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    return new ManagerProcess(child);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** What it has logged so far. */
  get output(): string {
    return this.#output.join('');
  }

  /** Whether it has ended. */
  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Stops the process in its tracks, if it has not ended; resolves when it stands still. */
  async pause(): Promise<void> {
    await halt(this.#child);
  }

  /** Lets a paused process go on. */
  resume(): void {
    this.#child.kill('SIGCONT');
  }

  /** Resolves when it has ended by itself. */
  async ended(): Promise<void> {
    if (!this.hasEnded) await once(this.#child, 'exit');
  }

  /** Ends the process; resolves with its exit code, null when the signal ended it. */
  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> {
    if (this.hasEnded) return this.#child.exitCode;
    const exited = once(this.#child, 'exit');
    this.#child.kill(signal);
    await exited;
    return this.#child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('SIGKILL');
  }
}
