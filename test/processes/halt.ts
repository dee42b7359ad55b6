import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';

import { procStat, readIfPresent } from '../../hack/control-plane/process-identity.ts';
import { eventually } from '../expect/eventually.ts';

/** A process that is halted by its parent: a ChildProcess, or a program of the control plane. */
export interface Haltable {
  readonly pid?: number | undefined;
  kill(signal: 'SIGSTOP'): unknown;
}

/** States of a thread that runs no more, see proc_pid_stat(5): stopped, and what is left of one that has ended. */
const STILL = new Set(['T', 'Z', 'X']);

/**
 * Halts a process (SIGSTOP), and resolves when it stands still or has ended. The signal alone is not enough: the kernel stops thread by thread,
 * and one that runs on another core may answer a request or write a file after kill(2) has returned. `SIGCONT` lets it go on.
 */
export async function halt(target: Haltable): Promise<void> {
  target.kill('SIGSTOP');
  await eventually(() => target.pid === undefined || statesOf(target.pid).every((state) => STILL.has(state)), {
    describe: () => `process ${target.pid} to stand still`,
  });
}

/** The state of each thread; where there is no /proc, that of the process. None when it has gone. */
function statesOf(pid: number): string[] {
  if (process.platform !== 'linux') {
    return [
      execFileSync('ps', ['-o', 'state=', '-p', String(pid)], { encoding: 'utf8' })
        .trim()
        .charAt(0),
    ];
  }
  const threads = readIfPresent(() => readdirSync(`/proc/${pid}/task`)) ?? [];
  return threads.flatMap((thread) => procStat(`/proc/${pid}/task/${thread}`)?.[0] ?? []);
}
