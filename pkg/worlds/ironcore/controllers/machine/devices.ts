import type { VolumeEntry } from '../../api/machine.ts';

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
const PREFIX = 'od';
/** With one letter, then with two. */
const MOST = LETTERS.length + LETTERS.length ** 2;

/**
 * Volumes with a device each: those without one are given the first that is free. Undefined when all have one, and nothing is to be
 * written. What is given must be stored: it would be another one when an earlier volume is gone.
 */
export function withDevices(volumes: readonly VolumeEntry[]): readonly VolumeEntry[] | undefined {
  const used = new Set(volumes.map(({ device }) => device));
  if (!used.has(undefined) && !used.has('')) return undefined;
  const free = freeDevices(used);
  return volumes.map((volume) => {
    if (volume.device !== undefined && volume.device !== '') return volume;
    const { value: device } = free.next();
    return device === undefined ? volume : { ...volume, device };
  });
}

function* freeDevices(used: ReadonlySet<string | undefined>): Generator<string, undefined> {
  for (let index = 0; index < MOST; index++) {
    const device = deviceAt(index);
    if (!used.has(device)) yield device;
  }
  return undefined;
}

function deviceAt(index: number): string {
  const letter = (at: number): string => LETTERS.charAt(at);
  if (index < LETTERS.length) return PREFIX + letter(index);
  const rest = index - LETTERS.length;
  return PREFIX + letter(Math.floor(rest / LETTERS.length)) + letter(rest % LETTERS.length);
}
