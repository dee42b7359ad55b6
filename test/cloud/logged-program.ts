import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';

/** A program that writes its log to a file. */
export class LoggedProgram implements AsyncDisposable {
  readonly #file: string;
  #child: ChildProcess | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  start(program: string, flags: readonly string[], env: Readonly<Record<string, string>>): void {
    const log = openSync(this.#file, 'a');
    this.#child = spawn(program, flags, { stdio: ['ignore', log, log], env: { ...process.env, ...env } });
    closeSync(log);
  }

  get log(): string {
    return readFileSync(this.#file, 'utf8');
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    if (this.#child === undefined) return;
    const ended = once(this.#child, 'exit');
    if (this.#child.exitCode !== null || !this.#child.kill(signal)) return;
    await ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('SIGKILL');
  }
}
