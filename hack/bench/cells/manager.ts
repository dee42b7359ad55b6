import { existsSync, readFileSync, rmSync } from 'node:fs';

import { request } from 'undici';

import { eventually } from '../../../test/expect/eventually.ts';
import type { Program } from '../programs.ts';
import { usageOf } from '../process-usage.ts';
import { type OpenFiles, openFilesOf } from './open-files.ts';

/** What is left when garbage has been collected, as heap.js writes it. */
export interface Heap {
  readonly heapUsed: number;
  readonly external: number;
  /** Timers, sockets and the like. */
  readonly resources: number;
}

/** What requests of a manager were, by `METHOD` and what was answered; those for Leases apart. */
export type SentRequests = Readonly<Record<string, number>>;

/** A manager that is measured. */
export class MeasuredManager implements AsyncDisposable {
  readonly #program: Program;
  readonly #port: number;
  readonly #heapFile: string;

  /** It serves its metrics on `port`, and has loaded heap.js with `heapFile`. */
  constructor(program: Program, port: number, heapFile: string) {
    this.#program = program;
    this.#port = port;
    this.#heapFile = heapFile;
  }

  get isRunning(): boolean {
    return existsSync(`/proc/${this.#program.pid}`);
  }

  get cpuSeconds(): number {
    return usageOf(this.#program.pid).cpuSeconds;
  }

  get residentMB(): number {
    return usageOf(this.#program.pid).residentMB;
  }

  get openFiles(): OpenFiles {
    return openFilesOf(this.#program.pid);
  }

  /** Collects garbage first. */
  async heap(): Promise<Heap> {
    rmSync(this.#heapFile, { force: true });
    process.kill(this.#program.pid, 'SIGUSR2');
    return await eventually(() => JSON.parse(readFileSync(this.#heapFile, 'utf8')) as Heap, {
      describe: 'the manager to collect garbage',
    });
  }

  async metrics(): Promise<string> {
    const { body } = await request(`http://127.0.0.1:${this.#port}/metrics`);
    return await body.text();
  }

  /** Of all clusters since its start; watches are GETs. */
  async requests(): Promise<SentRequests> {
    return requestsIn(await this.metrics());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#program.stop();
  }
}

/** Requests by method, in a text of metrics. */
export function requestsIn(text: string): SentRequests {
  const counts: Record<string, number> = {};
  for (const [, labels = '', value] of text.matchAll(/^rest_client_requests_total\{([^}]*)\} (\S+)$/gm)) {
    const method = /(?:^|,)method="([^"]*)"/.exec(labels)?.[1] ?? '';
    counts[method] = (counts[method] ?? 0) + Number(value);
  }
  return counts;
}
