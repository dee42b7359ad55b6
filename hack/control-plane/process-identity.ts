import { execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';

import { errnoOf } from './errno.ts';

/**
 * A process that cannot be mistaken for another: pids are reused, but not with the same start time, in the same pid
 * namespace, under the same boot of the same kernel.
 */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time as the kernel tells it (ticks since boot on Linux); compared, never computed with. */
  readonly startTime: string;
  /** Which boot and which pid namespace the pid belongs to. */
  readonly scope: string;
}

/** What is known of a recorded process: `unknown` when it lives in a scope that this process cannot see into. */
export type Liveness = 'alive' | 'dead' | 'unknown';

/** The boot and pid namespace of this process. Two containers on one machine have different scopes. */
function currentScope(): string {
  if (process.platform !== 'linux') return process.platform;
  return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}`;
}

/** Identity of a running process; undefined when there is none with that pid (a zombie counts as gone). */
export function identityOf(pid: number): ProcessIdentity | undefined {
  const startTime = process.platform === 'linux' ? startTimeFromProc(pid) : startTimeFromPs(pid);
  return startTime === undefined ? undefined : { pid, startTime, scope: currentScope() };
}

/** Whether exactly this process still runs. */
export function livenessOf(recorded: ProcessIdentity): Liveness {
  if (recorded.scope !== currentScope()) return 'unknown';
  return identityOf(recorded.pid)?.startTime === recorded.startTime ? 'alive' : 'dead';
}

/** Field 22 of /proc/<pid>/stat. */
function startTimeFromProc(pid: number): string | undefined {
  const fields = procStat(`/proc/${pid}`);
  const state = fields?.[0];
  return state === 'Z' || state === 'X' ? undefined : fields?.[19];
}

/**
 * The fields of `stat` in the folder of a process or of one of its threads, from the third on, which is the state (proc_pid_stat(5)): the
 * second may itself contain spaces and parentheses. Undefined when it has gone.
 */
export function procStat(folder: string): readonly string[] | undefined {
  const stat = readIfPresent(() => readFileSync(`${folder}/stat`, 'utf8'));
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** What was read of a process or a thread; undefined when that has gone. Other errors are thrown. */
export function readIfPresent<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (err) {
    if (errnoOf(err) === 'ENOENT' || errnoOf(err) === 'ESRCH') return undefined;
    throw err;
  }
}

function startTimeFromPs(pid: number): string | undefined {
  try {
    const line = execFileSync('ps', ['-o', 'state=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
    return line === '' || line.startsWith('Z') ? undefined : line.replace(/^\S+\s+/, '');
  } catch (err) {
    // ps ends with 1 when there is no such process.
    if (typeof err === 'object' && err !== null && 'status' in err && err.status === 1) return undefined;
    throw err;
  }
}
