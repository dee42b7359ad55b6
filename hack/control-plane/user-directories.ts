import { homedir } from 'node:os';
import { join } from 'node:path';

/** The variables that say where a user keeps things; `process.env` fits. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Where built programs are kept for all projects and checkouts of this user. */
export function cacheDirectory(env: Environment): string {
  return join(absolute(env['XDG_CACHE_HOME']) ?? join(home(env), '.cache'), 'machinist', 'control-plane');
}

/** Where running control planes and kubelets are written down, so that the next start can clean up after a dead one. */
export function ledgerDirectory(env: Environment): string {
  return join(absolute(env['XDG_STATE_HOME']) ?? join(home(env), '.local', 'state'), 'machinist', 'runs');
}

function home(env: Environment): string {
  return absolute(env['HOME']) ?? homedir();
}

/** The XDG specification says that relative paths are to be ignored. */
function absolute(path: string | undefined): string | undefined {
  return path?.startsWith('/') === true ? path : undefined;
}
