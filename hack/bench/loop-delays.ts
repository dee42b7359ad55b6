import { existsSync, readFileSync } from 'node:fs';

/** Seconds of which the file of loop-delay.js tells so far. */
export function secondsIn(file: string): number {
  return read(file).length;
}

/** How late the event loop was at worst since that second, in milliseconds; 0 when nothing was noted since. */
export function worstSince(file: string, second: number): number {
  return Math.max(0, ...read(file).slice(second));
}

function read(file: string): number[] {
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').filter(Boolean).map(Number) : [];
}
