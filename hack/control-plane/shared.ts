import { Connection } from './connection.ts';

/** Environment variable with the directory of a control plane that several processes use. */
export const SHARED_VARIABLE = 'MACHINIST_CONTROL_PLANE';

/** Makes a running control plane known to the processes that this one starts from now on. */
export function share(directory: string): void {
  process.env[SHARED_VARIABLE] = directory;
}

/** Undoes `share`. */
export function unshare(): void {
  delete process.env[SHARED_VARIABLE];
}

/** The shared control plane; undefined when there is none. Throws when the variable names one that is gone. */
export function shared(): Connection | undefined {
  const directory = process.env[SHARED_VARIABLE];
  return directory === undefined || directory === '' ? undefined : Connection.open(directory);
}
