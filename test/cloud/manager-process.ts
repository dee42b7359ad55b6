import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';

import { flagsOf, type RunOptions } from './manager.ts';

const MAIN = resolve(import.meta.dirname, '../../cmd/machinist/main.ts');

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

  /** Resolves at once; it works a little later. */
  static async start(options: Omit<RunOptions, 'hooks' | 'log'>): Promise<ManagerProcess> {
    const flags = [...(await flagsOf(options))].map(([name, value]) => `--${name}=${value}`);
    return new ManagerProcess(spawn(process.execPath, [MAIN, 'run', ...flags], { stdio: ['ignore', 'pipe', 'pipe'] }));
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

  /** SIGSTOP and SIGCONT: a process that is paused, and resumed. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal);
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
