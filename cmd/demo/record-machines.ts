import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';

import { errnoOf } from '../../hack/control-plane/errno.ts';
import type { LedgerRun } from '../../hack/control-plane/ledger.ts';
import type { LocalVM } from '../../packages/providers/local/vm.ts';
import { readProc } from '../../pkg/drivers/process-identity.ts';

const LOOK_EVERY_MS = 250;

/** The machines that the local driver has written down in its state directory, running or not. Changes nothing there. */
export function recordedMachines(stateDirectory: string): readonly LocalVM[] {
  const folder = path.join(stateDirectory, 'vms');
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((name) => {
    const text = readProc(path.join(folder, name, 'vm.json'));
    return text === undefined ? [] : [JSON.parse(text) as LocalVM]; // only ever written whole, by the driver
  });
}

/**
 * Keeps the kubelets of a state directory in `run`, from now on until the returned function is called: they outlive the driver
 * that started them, and must not outlive anyone who `run` belongs to.
 */
export function recordMachines(run: LedgerRun, stateDirectory: string): () => void {
  const recorded = new Set<number>();
  const timer = setInterval(() => {
    const machines = recordedMachines(stateDirectory).flatMap(({ machineName, process: kubelet }) =>
      kubelet === undefined ? [] : [{ machineName, pid: kubelet.pid }],
    );
    for (const { machineName, pid } of machines.filter((one) => !recorded.has(one.pid))) {
      if (isRecorded(run, `kubelet of ${machineName}`, pid)) recorded.add(pid);
    }
    const present = new Set(machines.map((one) => one.pid));
    for (const pid of [...recorded].filter((one) => !present.has(one))) {
      run.unregister(pid);
      recorded.delete(pid);
    }
  }, LOOK_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** False when the disk is full: the next look tries again. */
function isRecorded(run: LedgerRun, name: string, pid: number): boolean {
  try {
    run.register(name, pid);
    return true;
  } catch (err) {
    if (errnoOf(err) === undefined) throw err;
    return false;
  }
}
