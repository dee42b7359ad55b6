import { execFile } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { resolveProgram } from '../../hack/control-plane/binaries.ts';
import { Component } from '../../hack/control-plane/component.ts';
import { openRun } from '../../hack/control-plane/ledger.ts';
import { freePort } from '../../hack/control-plane/ports.ts';
import { feed } from '../processes/feed.ts';

/** What a Prometheus is told. */
export interface PrometheusOptions {
  /** `host:port` of whom to scrape, every two seconds: an answer may take as long, on a host that others share. */
  readonly targets: readonly string[];
  /** Path of a file of rules. */
  readonly rules?: string;
}

/** One series of an answer, at one moment. */
export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A rule that it evaluates. */
export interface EvaluatedRule {
  readonly name: string;
  readonly health: 'ok' | 'err' | 'unknown';
  readonly lastError?: string;
  readonly state: 'inactive' | 'pending' | 'firing';
}

/** The real Prometheus, with what it scrapes in a directory of its own. */
export class Prometheus implements AsyncDisposable {
  readonly #url: string;
  readonly #close: () => Promise<void>;

  private constructor(url: string, close: () => Promise<void>) {
    this.#url = url;
    this.#close = close;
  }

  /** Resolves when it answers. */
  static async start({ targets, rules }: PrometheusOptions): Promise<Prometheus> {
    const { path: program } = await resolveProgram('prometheus');
    const directory = mkdtempSync(join(tmpdir(), 'machinist-prometheus-'));
    const run = openRun(directory);
    const url = `http://127.0.0.1:${await freePort()}`;
    const config = join(directory, 'prometheus.yaml');
    // JSON is YAML.
    writeFileSync(
      config,
      JSON.stringify({
        global: { scrape_interval: '2s', evaluation_interval: '2s' },
        scrape_configs: [{ job_name: 'machinist', honor_labels: true, static_configs: [{ targets }] }],
        ...(rules === undefined ? {} : { rule_files: [rules] }),
      }),
    );
    const component = new Component({
      name: 'prometheus',
      program,
      args: [`--config.file=${config}`, '--storage.tsdb.path=data', `--web.listen-address=${new URL(url).host}`],
      directory,
      logFile: join(directory, 'prometheus.log'),
      run,
      isReady: async () => (await fetch(`${url}/-/ready`)).ok,
      log: () => undefined,
    });
    const close = async (): Promise<void> => {
      await component.stop('SIGKILL');
      await run.end();
    };
    try {
      await component.start();
    } catch (err) {
      await close();
      throw err;
    }
    return new Prometheus(url, close);
  }

  /** The answer to a query, at this moment. */
  async query(expression: string): Promise<readonly Sample[]> {
    const { result } = await this.#get<{ result: { metric: Sample['metric']; value: [number, string] }[] }>(
      `query?query=${encodeURIComponent(expression)}`,
    );
    return result.map(({ metric, value: [, value] }) => ({ metric, value: Number(value) }));
  }

  /** The rules, as it evaluates them. */
  async rules(): Promise<readonly EvaluatedRule[]> {
    const { groups } = await this.#get<{ groups: { rules: EvaluatedRule[] }[] }>('rules');
    return groups.flatMap(({ rules }) => rules);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }

  async #get<T>(path: string): Promise<T> {
    const answer = await fetch(`${this.#url}/api/v1/${path}`);
    const { status, data, error } = (await answer.json()) as { status: string; data: T; error?: string };
    if (status !== 'success') throw new Error(`asking Prometheus for ${decodeURIComponent(path)}: ${error ?? status}`);
    return data;
  }
}

/** How promtool ended. */
export interface Verdict {
  readonly code: number;
  readonly output: string;
}

/** Runs promtool, with `input` on standard input. */
export async function promtool(args: readonly string[], input = ''): Promise<Verdict> {
  const { path } = await resolveProgram('promtool');
  return await new Promise((resolve) => {
    const child = execFile(path, [...args], (err, stdout, stderr) => {
      resolve({ code: err === null ? 0 : Number(err.code ?? 1), output: stdout + stderr });
    });
    feed(child, input);
  });
}
