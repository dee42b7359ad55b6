import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import type { LedgerRun } from '../../hack/control-plane/ledger.ts';
import { isAlive, readProc, type ProcessIdentity } from '../../pkg/drivers/process-identity.ts';
import { endAll } from '../../pkg/drivers/local/end-all.ts';

/** A local machine as its driver has written it down. */
export interface LocalMachine {
  readonly machineName: string;
  readonly providerID: string;
  readonly process: ProcessIdentity | undefined;
}

const LOOK_EVERY_MS = 250;

/** The provider's side of the story: the machines in a state directory of the local driver. */
export class LocalMachines {
  readonly #stateDirectory: string;

  constructor(stateDirectory: string) {
    this.#stateDirectory = stateDirectory;
  }

  /** All that exist now, running or not. */
  list(): readonly LocalMachine[] {
    const folder = join(this.#stateDirectory, 'vms');
    if (!existsSync(folder)) return [];
    return readdirSync(folder).flatMap((name) => {
      const text = readProc(join(folder, name, 'vm.json'));
      return text === undefined ? [] : [JSON.parse(text) as LocalMachine]; // written by the driver
    });
  }

  /** Names of all that exist, in order. */
  get names(): readonly string[] {
    return this.list()
      .map(({ machineName }) => machineName)
      .toSorted();
  }

  /** A machine that dies without a word. Throws when it does not run. */
  kill(machineName: string): void {
    const process_ = this.list().find((vm) => vm.machineName === machineName)?.process;
    if (process_ === undefined || !isAlive(process_)) throw new Error(`killing ${machineName}: it does not run`);
    process.kill(process_.pid, 'SIGKILL');
  }

  /** Pids of kubelets that were started from this directory and run, whatever the driver says. */
  runningKubelets(): readonly number[] {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .filter((name) => readProc(`/proc/${name}/cmdline`)?.includes(`--cert-dir=${this.#stateDirectory}/`) === true)
      .map(Number);
  }

  /** Has `run` end them if this process is killed: they are no children of it. Returns what ends the recording. */
  recordIn(run: LedgerRun): () => void {
    const known = new Set<number>();
    const timer = setInterval(() => {
      for (const { machineName, process: kubelet } of this.list()) {
        if (kubelet === undefined || known.has(kubelet.pid)) continue;
        known.add(kubelet.pid);
        run.register(`kubelet of ${machineName}`, kubelet.pid);
      }
    }, LOOK_EVERY_MS);
    timer.unref();
    return () => clearInterval(timer);
  }

  /** Ends all of them; the driver must have ended before. */
  async endAll(): Promise<void> {
    if (existsSync(this.#stateDirectory)) await endAll(this.#stateDirectory);
  }
}
