import { readFileSync } from 'node:fs';

/** Clock ticks a second of /proc; 100 on every Linux that Node runs on. */
const TICKS = 100;

/** What a process has used so far. */
export interface Usage {
  /** Largest resident set since its start, in megabytes. */
  readonly peakMB: number;
  readonly cpuSeconds: number;
}

/** Reads /proc; throws when the process has ended. */
export function usageOf(pid: number): Usage {
  const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return { peakMB: Number(peak) / 1024, cpuSeconds: (Number(fields[11]) + Number(fields[12])) / TICKS };
}
