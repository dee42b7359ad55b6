import { closeSync, existsSync, fstatSync, openSync, readSync, truncateSync, writeFileSync } from 'node:fs';

/** Name of a kubelet's log in its machine's folder. */
export const LOG_FILE = 'kubelet.log';

/** A log may grow to this before it is cut. */
const MAX_BYTES = 8 * 1024 * 1024;
/** What is kept of it, in `<log>.1`. */
const KEPT_BYTES = 1024 * 1024;

/**
 * Cuts a log that has grown too large: its end goes to `<log>.1`, in place of the one before. The kubelet appends, so it goes
 * on writing at the new end; lines written between copy and cut are lost.
 */
export function boundLog(path: string, mostBytes = MAX_BYTES, keptBytes = KEPT_BYTES): void {
  if (!existsSync(path)) return;
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    if (size <= mostBytes) return;
    const end = Buffer.alloc(Math.min(keptBytes, size));
    const read = readSync(file, end, 0, end.length, size - end.length);
    writeFileSync(`${path}.1`, end.subarray(0, read), { mode: 0o600 });
  } finally {
    closeSync(file);
  }
  truncateSync(path, 0);
}
