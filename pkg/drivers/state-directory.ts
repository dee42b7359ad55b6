import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

import { hasErrno } from '../driver/errno.ts';
import { identityOf, isAlive, type ProcessIdentity } from './process-identity.ts';

/** The directory is used by another driver that still runs. */
export class StateDirectoryError extends Error {
  override readonly name = 'StateDirectoryError';
  /** Of the process that uses it. */
  readonly pid: number;

  constructor(path: string, pid: number) {
    super(`${path} is in use by process ${pid}`);
    this.pid = pid;
  }
}

/**
 * What a driver keeps over restarts. Held by one process at a time: two drivers that both believe to know all VMs would lose
 * or double some. The lock of a process that was killed is taken over.
 */
export class StateDirectory implements Disposable {
  /** Absolute. */
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** Makes the directory, readable only by this user, and locks it. Throws StateDirectoryError. */
  static open(directory: string): StateDirectory {
    const path = resolve(directory);
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const lock = join(path, 'lock.json');
    const self = identityOf(process.pid);
    while (!tryWrite(lock, JSON.stringify(self ?? { pid: process.pid }))) {
      const owner = readOwner(lock);
      if (owner !== undefined && owner.pid !== process.pid && isAlive(owner)) {
        throw new StateDirectoryError(path, owner.pid);
      }
      rmSync(lock, { force: true });
    }
    return new StateDirectory(path);
  }

  file(name: string): string {
    return join(this.path, name);
  }

  [Symbol.dispose](): void {
    rmSync(this.file('lock.json'), { force: true });
  }
}

function tryWrite(path: string, text: string): boolean {
  try {
    writeFileSync(path, text, { flag: 'wx', mode: 0o600 });
    return true;
  } catch (err) {
    if (hasErrno(err, 'EEXIST')) return false;
    throw err;
  }
}

/** Undefined for a lock that was torn by a crash, and for one that is gone meanwhile. */
function readOwner(path: string): ProcessIdentity | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as ProcessIdentity; // only ever written above
  } catch {
    return undefined;
  }
}
