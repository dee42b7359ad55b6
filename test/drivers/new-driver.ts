import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

import type { Language } from '../../cmd/machinist/driver/scaffold.ts';
import { newDriver } from '../../cmd/machinist/driver/new.ts';
import { eventually } from '../expect/eventually.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const PATIENCE = { timeoutMs: 60_000, intervalMs: 50 };

/** What verify.sh found. */
export interface Verdict {
  readonly passed: number;
  readonly failed: number;
  readonly notApplicable: number;
  readonly rules: readonly { readonly name: string; readonly outcome: string; readonly reason?: string }[];
}

/** Writes a driver, as `machinist driver new` does. Resolves with the commands that it tells its author to type. */
export async function write(language: Language, name: string, place: string): Promise<readonly string[]> {
  const lines: string[] = [];
  const say = (line: string): void => void lines.push(line);
  const code = await newDriver(name, { language }, { out: say, err: say, env: {} }, place);
  if (code !== 0) throw new Error(lines.join('\n'));
  return lines.filter((line) => line.startsWith('  ')).map((line) => line.trim());
}

/** A new driver that runs, in the hands of its author: by the scripts that came with it. */
export class NewDriver implements AsyncDisposable {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Resolves when it says that it serves. */
  static async start(folder: string, ...args: readonly string[]): Promise<NewDriver> {
    const driver = new NewDriver(folder);
    await rm(path.join(folder, 'run/log'), { force: true });
    await driver.#shell('start.sh', ...args);
    await eventually(async () => (await driver.log()).includes('"msg":"serving"'), {
      ...PATIENCE,
      describe: () => `it serves, in ${folder}/run/log`,
    });
    return driver;
  }

  async log(): Promise<string> {
    return await readFile(path.join(this.#folder, 'run/log'), 'utf8');
  }

  /** Holds it to every rule. */
  async verify(): Promise<Verdict> {
    const stdout = await this.#shell('verify.sh', '--output=json', '--rule-timeout=60s');
    return JSON.parse(stdout) as Verdict; // as the command prints it
  }

  /** Ends it as a crash would, and starts it again. */
  async restart(): Promise<void> {
    await this.#shell('proof/restart.sh');
  }

  /** The VMs that its provider has, by their provider IDs. */
  async vms(): Promise<readonly string[]> {
    const cloud = path.join(this.#folder, 'run/cloud');
    const files = (await readdir(cloud)).filter((file) => file.endsWith('.json'));
    const texts = await Promise.all(files.map((file) => readFile(path.join(cloud, file), 'utf8')));
    return texts.map((text) => (JSON.parse(text) as { providerID: string }).providerID).toSorted();
  }

  /** Path of its socket. */
  get socket(): string {
    return path.join(this.#folder, 'run/driver.sock');
  }

  /** Asks it to end; resolves when it has taken its socket away. */
  async end(): Promise<void> {
    process.kill(await this.#pid(), 'SIGTERM');
    await eventually(() => !existsSync(this.socket), PATIENCE);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // One that could not be started again has none: the test says why.
    if (!existsSync(path.join(this.#folder, 'run/pid'))) return;
    try {
      process.kill(await this.#pid(), 'SIGKILL');
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code !== 'ESRCH') throw err;
    }
    // It may take a moment to go, and must not keep the next one from being started.
    await rm(path.join(this.#folder, 'run/pid'));
  }

  async #pid(): Promise<number> {
    return Number(await readFile(path.join(this.#folder, 'run/pid'), 'utf8'));
  }

  /** Whatever it ends with, what it printed counts. */
  async #shell(script: string, ...args: readonly string[]): Promise<string> {
    const env = { ...process.env, MACHINIST: `${process.execPath} ${ROOT}/cmd/machinist/main.ts` };
    try {
      const { stdout } = await promisify(execFile)('sh', [script, ...args], { cwd: this.#folder, env });
      return stdout;
    } catch (err) {
      const { stdout = '', stderr = '' } = err as { stdout?: string; stderr?: string };
      if (stdout === '') throw new Error(`${script}: ${stderr}`, { cause: err });
      return stdout;
    }
  }
}
