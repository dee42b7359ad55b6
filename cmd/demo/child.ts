import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';

import type { LedgerRun } from '../../hack/control-plane/ledger.ts';

const STOP_DEADLINE_MS = 30_000;

/** A program that the demo runs beside itself. */
export interface ChildOptions {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly logFile: string;
  readonly run: LedgerRun;
  /** Called when it ends although nobody asked it to, with how it ended ("was killed by SIGKILL"), and whether a signal did it. */
  readonly onUnexpectedEnd: (how: string, isKilled: boolean) => void;
}

/** A process of the demo; the constructor throws what writing it down throws, and then it does not run. In a group of its own: Ctrl-C reaches only the demo, which then stops the others in order. */
export class Child {
  readonly #child: ChildProcess;
  readonly #name: string;
  readonly #ended: Promise<void>;
  #isStopping = false;

  constructor({ name, program, args, logFile, run, onUnexpectedEnd }: ChildOptions) {
    const log = openSync(logFile, 'a');
    this.#name = name;
    this.#child = spawn(program, args, { stdio: ['ignore', log, log], detached: true });
    closeSync(log);
    this.#ended = new Promise((resolve) => {
      const end = (how: string, isKilled = false): void => {
        if (this.#child.pid !== undefined) run.unregister(this.#child.pid);
        if (!this.#isStopping) onUnexpectedEnd(how, isKilled);
        resolve();
      };
      this.#child.once('exit', (code, signal) =>
        end(signal === null ? `exited with code ${code}` : `was killed by ${signal}`, signal !== null),
      );
      this.#child.once('error', (err) => end(`could not start: ${err.message}`));
    });
    try {
      if (this.#child.pid !== undefined) run.register(name, this.#child.pid);
    } catch (err) {
      this.#isStopping = true;
      this.#child.kill('SIGKILL'); // nobody would end it after a crash
      throw err;
    }
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Asks it to end, and ends it the hard way when it takes too long. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill('SIGTERM');
    this.#child.kill('SIGCONT'); // one that somebody has halted does not hear it
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_DEADLINE_MS);
    await this.#ended;
    clearTimeout(timer);
  }

  toString(): string {
    return `${this.#name} (pid ${this.#child.pid})`;
  }
}
