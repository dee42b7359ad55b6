import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { errnoOf } from './errno.ts';
import { identityOf, livenessOf, type ProcessIdentity } from './process-identity.ts';
import { ledgerDirectory } from './user-directories.ts';

/*
 * A run is a process (the owner) that has started others and keeps their files in one directory. It is written down when it
 * begins and removed when it ends well. After the owner was killed, the next one to start ends what is left:
 *
 *   owner    | recorded process          | what happens
 *   alive    | any                       | nothing
 *   unknown  | any                       | nothing (another container or an earlier boot; forgotten once its directory is gone)
 *   dead     | pid and start time match  | SIGKILL
 *   dead     | anything else             | nothing: the pid is someone else's by now
 *
 * and then removes the directory, if that carries the run's mark.
 */

/** Name of the file that proves which run a directory belongs to. */
const MARK = '.machinist-run';
const GONE_DEADLINE_MS = 5_000;

interface RecordedProcess extends ProcessIdentity {
  readonly name: string;
}

interface RecordedRun {
  readonly id: string;
  readonly directory: string;
  readonly owner: ProcessIdentity;
  readonly processes: readonly RecordedProcess[];
}

/** What a clean-up did: processes ended ("kube-apiserver 4711"), directories removed, and runs that were left alone and why. */
export interface CleanUpReport {
  readonly ended: readonly string[];
  readonly removed: readonly string[];
  readonly left: readonly string[];
}

/** Where the ledger is; the user's state directory unless told otherwise. */
export interface LedgerOptions {
  readonly ledger?: string | undefined;
}

/** How the runs of dead owners are cleaned up. */
export interface CleanUpOptions extends LedgerOptions {
  /** Called when all processes of a dead run have ended, before its directory is removed. */
  readonly beforeRemoval?: (directory: string) => Promise<void>;
}

/** How a run is written down. */
export interface RunOptions extends LedgerOptions {
  /** The process whose end makes the run a dead one; this process unless told otherwise (a driver whose VMs survive it). */
  readonly ownerPid?: number;
}

/** One run in the ledger. Every change is on disk when the call returns. */
export class LedgerRun {
  readonly directory: string;
  readonly #file: string;
  readonly #id: string;
  readonly #owner: ProcessIdentity;
  #processes: RecordedProcess[] = [];
  #isClosed = false;

  constructor(file: string, id: string, directory: string, owner: ProcessIdentity) {
    this.directory = directory;
    this.#file = file;
    this.#id = id;
    this.#owner = owner;
    this.#write();
  }

  /** Records a process that was just started. One that has ended already needs no record. Throws what writing throws. */
  register(name: string, pid: number): void {
    const identity = identityOf(pid);
    if (identity === undefined) return;
    this.#processes = [...this.#processes.filter((p) => p.pid !== pid), { name, ...identity }];
    this.#write();
  }

  /** Forgets a process that has ended. On a full disk its record stays, which does no harm: see the table. */
  unregister(pid: number): void {
    this.#processes = this.#processes.filter((p) => p.pid !== pid);
    try {
      this.#write();
    } catch (err) {
      if (errnoOf(err) === undefined) throw err;
    }
  }

  /** Ends the recorded processes, waits until they are gone, removes the directory and forgets the run. */
  async end(): Promise<void> {
    await Promise.all(this.#processes.map((recorded) => endProcess(recorded)));
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 5 });
    this.close();
  }

  /** Sends SIGKILL to the recorded processes, and leaves the rest. */
  killNow(): void {
    for (const recorded of this.#processes) {
      if (livenessOf(recorded) === 'alive') tryKill(recorded.pid);
    }
  }

  /** The same as `end` without waiting: for the last moment of a process. */
  endNow(): void {
    this.killNow();
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 5 });
    this.close();
  }

  /** Forgets the run: to be called when all its processes have ended and its directory is gone. */
  close(): void {
    this.#isClosed = true;
    rmSync(this.#file, { force: true });
  }

  #write(): void {
    if (this.#isClosed) return; // the end of a process may be noticed after that of the run
    const run: RecordedRun = {
      id: this.#id,
      directory: this.directory,
      owner: this.#owner,
      processes: this.#processes,
    };
    const aside = `${this.#file}.tmp`;
    writeFileSync(aside, JSON.stringify(run, undefined, 2), { mode: 0o600 });
    renameSync(aside, this.#file);
  }
}

/**
 * Writes down a run in `directory` (which must exist and is marked); its processes follow by `register`. Anyone who
 * starts processes that outlive a killed parent may use it: the control plane, the demo, a driver with its kubelets.
 */
export function openRun(directory: string, options: RunOptions = {}): LedgerRun {
  const ledger = options.ledger ?? ledgerDirectory(process.env);
  mkdirSync(ledger, { recursive: true, mode: 0o700 });
  const ownerPid = options.ownerPid ?? process.pid;
  const owner = identityOf(ownerPid);
  if (owner === undefined) throw new Error(`opening a run for process ${ownerPid}: there is no such process`);
  const id = `${process.pid}-${randomBytes(6).toString('hex')}`;
  const run = new LedgerRun(join(ledger, `${id}.json`), id, directory, owner);
  writeFileSync(join(directory, MARK), id);
  return run;
}

/**
 * Ends what dead owners left behind, by the table above. Never touches what is not provably theirs. Safe to call from several
 * processes at once.
 */
export async function cleanUpDeadRuns(options: CleanUpOptions = {}): Promise<CleanUpReport> {
  const ledger = options.ledger ?? ledgerDirectory(process.env);
  const report = { ended: [] as string[], removed: [] as string[], left: [] as string[] };
  // Ending a process may make an owner dead whose run was looked at before (a driver and its kubelets): once more, then.
  for (let before = -1; before !== report.ended.length;) {
    before = report.ended.length;
    report.left.length = 0;
    for (const { file, run } of readRuns(ledger)) await cleanUp(file, run, report, options);
  }
  return report;
}

async function cleanUp(
  file: string,
  run: RecordedRun,
  report: Record<keyof CleanUpReport, string[]>,
  { beforeRemoval }: CleanUpOptions,
): Promise<void> {
  const owner = livenessOf(run.owner);
  if (owner === 'alive') return;
  if (owner === 'unknown') {
    if (!existsSync(run.directory)) rmSync(file, { force: true });
    else report.left.push(`${run.directory}: its owner (pid ${run.owner.pid}) cannot be looked at from here`);
    return;
  }
  for (const recorded of run.processes) {
    if (livenessOf(recorded) !== 'alive') continue;
    if (await endProcess(recorded)) report.ended.push(`${recorded.name} ${recorded.pid}`);
    else return void report.left.push(`${run.directory}: ${recorded.name} (pid ${recorded.pid}) cannot be ended`);
  }
  if (isMarked(run)) {
    await beforeRemoval?.(run.directory);
    rmSync(run.directory, { recursive: true, force: true });
    report.removed.push(run.directory);
  }
  rmSync(file, { force: true });
}

/** Kills a process and waits until it is gone; false when it belongs to someone else or survives. */
async function endProcess(recorded: RecordedProcess): Promise<boolean> {
  if (livenessOf(recorded) !== 'alive') return true;
  if (!tryKill(recorded.pid)) return false;
  for (let waitedMs = 0; waitedMs < GONE_DEADLINE_MS; waitedMs += 10) {
    if (livenessOf(recorded) === 'dead') return true;
    await sleep(10);
  }
  return false;
}

/** False when the process belongs to another user. */
function tryKill(pid: number): boolean {
  try {
    process.kill(pid, 'SIGKILL');
    return true;
  } catch (err) {
    if (errnoOf(err) === 'EPERM') return false;
    if (errnoOf(err) === 'ESRCH') return true;
    throw err;
  }
}

function isMarked(run: RecordedRun): boolean {
  try {
    return readFileSync(join(run.directory, MARK), 'utf8') === run.id;
  } catch (err) {
    if (errnoOf(err) === 'ENOENT' || errnoOf(err) === 'ENOTDIR') return false;
    throw err;
  }
}

function readRuns(ledger: string): { file: string; run: RecordedRun }[] {
  if (!existsSync(ledger)) return [];
  const files = readdirSync(ledger).filter((name) => name.endsWith('.json'));
  return files.map((name) => readRun(join(ledger, name))).filter((entry) => entry !== undefined);
}

/** One entry; undefined when another process has just removed it or it is not ours to understand. */
function readRun(file: string): { file: string; run: RecordedRun } | undefined {
  try {
    const run = JSON.parse(readFileSync(file, 'utf8')) as Partial<RecordedRun>; // checked below
    if (run.id === undefined || run.directory === undefined || run.owner === undefined) return undefined;
    return { file, run: { ...run, processes: run.processes ?? [] } as RecordedRun };
  } catch (err) {
    if (errnoOf(err) === 'ENOENT' || err instanceof SyntaxError) return undefined;
    throw err;
  }
}
