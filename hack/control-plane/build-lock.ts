import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

import { errnoOf } from './errno.ts';
import { identityOf, livenessOf, type ProcessIdentity } from './process-identity.ts';

const HEARTBEAT_MS = 5_000;
/** A holder in another pid namespace cannot be looked at: without a heartbeat for so long it is taken for dead. */
const SILENT_MS = 60_000;
const POLL_MS = 250;
/** How often a process that waits says so. */
const REPORT_MS = 10_000;

/** Who holds a lock. */
export interface LockHolder {
  readonly pid: number;
  /** For how long; undefined for one of an older version, which does not say. */
  readonly heldMs: number | undefined;
  /** What it said last of its work, if anything. */
  readonly lastLine: string | undefined;
}

/** How waiting for another process is reported: when it begins, and every 10 s. */
export type OnWait = (holder: LockHolder) => void;

/** Says one line of the work under the lock to those who wait for it. */
export type Note = (line: string) => void;

interface LockFile extends ProcessIdentity {
  readonly sinceMs?: number;
}

/**
 * Runs `work` while no other process of this user holds the lock file. A lock of a dead process is broken at once. The lock
 * only saves work: what it protects must stay correct without it (files are put in place by rename).
 * Rejects with the signal's reason when that is aborted while waiting.
 */
export async function withLock<T>(
  path: string,
  work: (note: Note) => Promise<T>,
  { signal, onWait }: { signal?: AbortSignal | undefined; onWait?: OnWait | undefined } = {},
): Promise<T> {
  mkdirSync(dirname(path), { recursive: true });
  let reportedMs: number | undefined;
  while (!tryAcquire(path)) {
    if (breakIfStale(path)) continue;
    const holder = readHolder(path);
    const nowMs = performance.now();
    if (holder !== undefined && (reportedMs === undefined || nowMs - reportedMs >= REPORT_MS)) {
      reportedMs = nowMs;
      onWait?.(describe(holder, path));
    }
    await pause(signal);
  }
  const heartbeat = setInterval(() => touch(path), HEARTBEAT_MS);
  heartbeat.unref();
  try {
    return await work((line) => writeNote(path, line));
  } finally {
    clearInterval(heartbeat);
    if (isOwn(path)) {
      rmSync(noteFile(path), { force: true });
      rmSync(path, { force: true });
    }
  }
}

/** One line for who waits: "waiting for process 4711, which builds the control plane, for 80 s: building etcd 3.6.16… 20 s". */
export function describeWait({ pid, heldMs, lastLine }: LockHolder, does: string): string {
  const since = heldMs === undefined ? '' : `, for ${Math.max(0, Math.round(heldMs / 1000))} s`;
  return `waiting for process ${pid}, which ${does}${since}${lastLine === undefined ? '…' : `: ${lastLine}`}`;
}

function describe({ pid, sinceMs }: LockFile, path: string): LockHolder {
  return { pid, heldMs: sinceMs === undefined ? undefined : Date.now() - sinceMs, lastLine: readNote(path) };
}

function noteFile(path: string): string {
  return `${path}.log`;
}

/** Only for people: where it cannot be written, they see nothing. */
function writeNote(path: string, line: string): void {
  try {
    writeFileSync(noteFile(path), `${line}\n`);
  } catch (err) {
    if (errnoOf(err) === undefined) throw err;
  }
}

function readNote(path: string): string | undefined {
  try {
    const line = readFileSync(noteFile(path), 'utf8').trim();
    return line === '' ? undefined : line;
  } catch (err) {
    if (errnoOf(err) === undefined) throw err;
    return undefined;
  }
}

/** Rejects with the signal's own reason, which says who stopped it, and not with the timer's. */
async function pause(signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  try {
    await sleep(POLL_MS, undefined, signal === undefined ? {} : { signal });
  } catch (err) {
    signal?.throwIfAborted();
    throw err;
  }
}

/** A lock appears complete or not at all: it is written aside and linked into place, which fails when one is there. */
function tryAcquire(path: string): boolean {
  const aside = `${path}.${process.pid}`;
  writeFileSync(aside, JSON.stringify({ ...identityOf(process.pid), sinceMs: Date.now() }));
  try {
    linkSync(aside, path);
    return true;
  } catch (err) {
    if (errnoOf(err) === 'EEXIST') return false;
    throw err;
  } finally {
    rmSync(aside, { force: true });
  }
}

function breakIfStale(path: string): boolean {
  const holder = readHolder(path);
  if (holder === undefined) return true; // released meanwhile
  const liveness = livenessOf(holder);
  if (liveness === 'alive' || (liveness === 'unknown' && ageMs(path) < SILENT_MS)) return false;

  // Moved aside first: of two processes that see the same stale lock only one can move it.
  const aside = `${path}.stale.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return true;
    throw err;
  }
  putBackUnless(holder, aside, path);
  return true;
}

/** Between reading and moving, another process may have replaced the stale lock by its own: that one goes back. */
function putBackUnless(stale: ProcessIdentity, aside: string, path: string): void {
  const moved = readHolder(aside);
  try {
    if (moved?.pid !== stale.pid || moved.startTime !== stale.startTime) linkSync(aside, path);
  } catch (err) {
    if (errnoOf(err) !== 'EEXIST') throw err;
  } finally {
    rmSync(aside, { force: true });
  }
}

/** The process that holds the lock; undefined when nobody does. */
function readHolder(path: string): LockFile | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as LockFile; // written by tryAcquire only
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return undefined;
    throw err;
  }
}

function isOwn(path: string): boolean {
  const holder = readHolder(path);
  return holder?.pid === process.pid && livenessOf(holder) === 'alive';
}

function ageMs(path: string): number {
  try {
    return Date.now() - statSync(path).mtimeMs;
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return 0;
    throw err;
  }
}

function touch(path: string): void {
  const now = new Date();
  try {
    utimesSync(path, now, now);
  } catch (err) {
    if (errnoOf(err) !== 'ENOENT') throw err;
  }
}
