import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { errnoOf } from './errno.ts';
import { identityOf, livenessOf, type ProcessIdentity } from './process-identity.ts';

const HEARTBEAT_MS = 5_000;
/** A holder in another pid namespace cannot be looked at: without a heartbeat for so long it is taken for dead. */
const SILENT_MS = 60_000;
const POLL_MS = 250;

/** How waiting for another process is reported: `holder` is its pid. */
export type OnWait = (holder: number) => void;

/**
 * Runs `work` while no other process of this user holds the lock file. A lock of a dead process is broken at once. The lock
 * only saves work: what it protects must stay correct without it (files are put in place by rename).
 * Rejects with the signal's reason when that is aborted while waiting.
 */
export async function withLock<T>(
  path: string,
  work: () => Promise<T>,
  { signal, onWait }: { signal?: AbortSignal | undefined; onWait?: OnWait | undefined } = {},
): Promise<T> {
  mkdirSync(dirname(path), { recursive: true });
  let told = false;
  while (!tryAcquire(path)) {
    if (breakIfStale(path)) continue;
    const holder = readHolder(path);
    if (!told && holder !== undefined) {
      told = true;
      onWait?.(holder.pid);
    }
    await pause(signal);
  }
  const heartbeat = setInterval(() => touch(path), HEARTBEAT_MS);
  heartbeat.unref();
  try {
    return await work();
  } finally {
    clearInterval(heartbeat);
    if (isOwn(path)) rmSync(path, { force: true });
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
  writeFileSync(aside, JSON.stringify(identityOf(process.pid)));
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
function readHolder(path: string): ProcessIdentity | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as ProcessIdentity; // written by tryAcquire only
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
