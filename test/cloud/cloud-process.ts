import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ControlClient } from './control-client.ts';
import type { JournalEntry } from '../../packages/providers/sim/journal.ts';
import type { SimVM } from '../../packages/providers/sim/vm.ts';
import { DriverProcess } from '../drivers/driver-process.ts';
import type { CloudConsole } from './pool.ts';
import type { Site } from './site.ts';

/** How long things take, as flags. */
const LATENCIES = ['--create-latency=400ms', '--delete-latency=300ms', '--join-delay=100ms'];

/** A simulated cloud as a process of its own that can be killed and started again; its VMs live on. */
export class CloudProcess implements CloudConsole, AsyncDisposable {
  readonly address: string;
  readonly #directory: string;
  readonly #site: Site;
  #running: { readonly driver: DriverProcess; readonly control: ControlClient } | undefined;

  private constructor(directory: string, site: Site) {
    this.address = `unix://${join(directory, 'driver.sock')}`;
    this.#directory = directory;
    this.#site = site;
  }

  static async start(site: Site): Promise<CloudProcess> {
    const cloud = new CloudProcess(await mkdtemp(join(tmpdir(), 'cloud-')), site);
    await cloud.restart();
    return cloud;
  }

  /** Starts it again after `kill`. */
  async restart(): Promise<void> {
    const path = join(this.#directory, 'control.sock');
    const driver = await DriverProcess.start('sim-driver', [
      `--address=${this.address}`,
      `--control=unix://${path}`,
      `--state-directory=${join(this.#directory, 'state')}`,
      `--kubeconfig=${this.#site.driverKubeconfig}`,
      ...LATENCIES,
    ]);
    this.#running = { driver, control: new ControlClient(path) };
  }

  /** kill -9. */
  async kill(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    await running?.driver.end('SIGKILL');
    await running?.control[Symbol.asyncDispose]();
  }

  /** Resolves when it stands still. */
  async pause(): Promise<void> {
    await this.#running?.driver.freeze();
  }

  /** Lets it go on. */
  resume(): void {
    this.#running?.driver.thaw();
  }

  async vms(): Promise<readonly SimVM[]> {
    if (this.#running === undefined) throw new Error('the cloud does not run');
    return await this.#running.control.vms();
  }

  /** Machine names of all VMs ever made, one for each VM, as the cloud's journal has them. */
  everMade(): readonly string[] {
    const made = new Map<string, string>();
    for (const entry of this.#journal()) if (entry.op === 'put') made.set(entry.vm.providerID, entry.vm.machineName);
    return [...made.values()].toSorted();
  }

  /** How many VMs were ever removed, as the cloud's journal has them. */
  get everRemoved(): number {
    return this.#journal().filter(({ op }) => op === 'remove').length;
  }

  #journal(): readonly JournalEntry[] {
    const text = readFileSync(join(this.#directory, 'state', 'vms.jsonl'), 'utf8');
    const lines = text.split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line) as JournalEntry); // written by Journal
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await rm(this.#directory, { recursive: true, force: true });
  }
}
