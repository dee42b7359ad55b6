import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

import { halt } from '../processes/halt.ts';
import { programFile } from '../processes/program-file.ts';

/** A driver's command, running as its own process. */
export class DriverProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #output: string[];

  private constructor(child: ChildProcess, output: string[]) {
    this.#child = child;
    this.#output = output;
  }

  /** Resolves when the driver says that it serves; rejects, with what it printed, when it ends before. */
  static async start(
    command:
      | 'sim-driver'
      | 'local-driver'
      | 'openstack-driver'
      | 'kwok-driver'
      | 'cluster-api-driver'
      | 'ironcore-driver',
    args: readonly string[],
  ): Promise<DriverProcess> {
    const { file, env } = programFile(command);
    const child = spawn(process.execPath, [file, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const output: string[] = [];
    const serving = new Promise<void>((resolve_, reject) => {
      for (const stream of [child.stdout, child.stderr]) {
        createInterface({ input: stream }).on('line', (line) => {
          output.push(line);
          if (line.includes('"msg":"serving"')) resolve_();
        });
      }
      child.once('exit', (code) => reject(new Error(`${command} ended with ${code}:\n${output.join('\n')}`)));
    });
    await serving;
    return new DriverProcess(child, output);
  }

  /** What it has printed so far. */
  get output(): string {
    return this.#output.join('\n');
  }

  /** Stops the process in its tracks; it answers nothing until it is killed or goes on. */
  async freeze(): Promise<void> {
    await halt(this.#child);
  }

  /** Lets a frozen process go on. */
  thaw(): void {
    this.#child.kill('SIGCONT');
  }

  /** Ends the process and waits until it has gone. */
  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill(signal);
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('SIGKILL');
  }
}
