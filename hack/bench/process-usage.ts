import { readFileSync, writeFileSync } from 'node:fs';

/** Clock ticks a second of /proc; 100 on every Linux that Node runs on. */
const TICKS = 100;

/** What a process has used so far. */
export interface Usage {
  /** Largest resident set since its start or the last `resetPeak`, in megabytes. */
  readonly peakMB: number;
  /** Present resident set, in megabytes. */
  readonly residentMB: number;
  readonly cpuSeconds: number;
}

/** Reads /proc; throws when the process has ended. */
export function usageOf(pid: number): Usage {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const megabytes = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1024;
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return {
    peakMB: megabytes('VmHWM'),
    residentMB: megabytes('VmRSS'),
    cpuSeconds: (Number(fields[11]) + Number(fields[12])) / TICKS,
  };
}

/** Begins a new peak at the present resident set. */
export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}
