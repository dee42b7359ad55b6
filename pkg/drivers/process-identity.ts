import { readFileSync } from 'node:fs';

import { hasErrno } from '../driver/errno.ts';

/** A process that cannot be mistaken for another: pids are used again, but not with the same start time in the same boot. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Ticks since boot, as the kernel tells it; compared, never computed with. */
  readonly startTime: string;
  readonly bootID: string;
}

/** Identity of a running process; undefined when there is none with that pid (a zombie counts as gone). Linux only. */
export function identityOf(pid: number): ProcessIdentity | undefined {
  const stat = readProc(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The second field is the program's name, which may itself contain spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state] = fields;
  const startTime = fields[19];
  if (state === 'Z' || state === 'X' || startTime === undefined) return undefined;
  return { pid, startTime, bootID: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim() };
}

/** Whether exactly this process still runs. */
export function isAlive(process: ProcessIdentity): boolean {
  const now = identityOf(process.pid);
  return now?.startTime === process.startTime && now.bootID === process.bootID;
}

/** The content of a file under /proc, undefined when its process is gone or is another user's. */
export function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (err) {
    if (hasErrno(err, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) return undefined;
    throw err;
  }
}
