import { existsSync, readdirSync } from 'node:fs';

import { recordedMachines, recordMachines } from '../../cmd/demo/record-machines.ts';
import type { LedgerRun } from '../../hack/control-plane/ledger.ts';
import { endAll } from '../../packages/providers/local/end-all.ts';
import type { LocalVM } from '../../packages/providers/local/vm.ts';
import { isAlive, readProc } from '../../pkg/drivers/process-identity.ts';

/** The provider's side of the story: the machines in a state directory of the local driver. */
export class LocalMachines {
  readonly #stateDirectory: string;

  constructor(stateDirectory: string) {
    this.#stateDirectory = stateDirectory;
  }

  /** All that exist now, running or not. */
  list(): readonly LocalVM[] {
    return recordedMachines(this.#stateDirectory);
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
    return recordMachines(run, this.#stateDirectory);
  }

  /** Ends all of them; the driver must have ended before. */
  async endAll(): Promise<void> {
    if (existsSync(this.#stateDirectory)) await endAll(this.#stateDirectory);
  }
}
