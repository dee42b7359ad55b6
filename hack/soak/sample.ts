import { readdirSync, readFileSync } from 'node:fs';

/** What the manager holds at a quiet moment. */
export interface Sample {
  readonly minute: number;
  /** What the last full collection has left. */
  readonly heapMB: number;
  readonly residentMB: number;
  /** Open files and sockets. */
  readonly descriptors: number;
}

/** Of Node: tells of collections, and makes full ones often. */
export const GC_FLAGS: readonly string[] = ['--trace-gc', '--max-semi-space-size=2', '--max-old-space-size=256'];

/** Reads the manager's log, its entry in /proc and its metrics. Undefined before the first full collection. */
export async function takeSample(
  { pid, port, log }: { readonly pid: number; readonly port: number; readonly log: string },
  minute: number,
): Promise<Sample | undefined> {
  const collections = [...readFileSync(log, 'utf8').matchAll(/Mark-Compact.*?-> ([\d.]+) \(/g)];
  const heapMB = collections.at(-1)?.[1];
  if (heapMB === undefined) return undefined;
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const resident = /^process_resident_memory_bytes (\S+)$/m.exec(text)?.[1];
  return {
    minute,
    heapMB: Number(heapMB),
    residentMB: Number(resident) / 1e6,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
  };
}

/** How much the least of the last third of samples may exceed the least of the second. */
const HEAP_GROWTH_MB = 5;
const DESCRIPTOR_GROWTH = 10;

/**
 * What has grown, in words; empty when nothing has. A moment with much in it makes single samples high, so the least of each third of the
 * run are compared. The first third does not count: what is remembered of Events and of machines that have gone is bounded, but
 * full only after some thousand of each. Fewer than six samples prove nothing.
 */
export function growthIn(samples: readonly Sample[]): readonly string[] {
  if (samples.length < 6) return [`only ${samples.length} quiet moments: run it longer`];
  const third = Math.floor(samples.length / 3);
  const [second, last] = [samples.slice(third, -third), samples.slice(-third)];
  const least = (some: readonly Sample[], read: (sample: Sample) => number): number => Math.min(...some.map(read));
  const grown = (what: string, read: (sample: Sample) => number, most: number): string[] => {
    const [before, after] = [least(second, read), least(last, read)];
    return after - before > most ? [`${what} grew from ${before.toFixed(1)} to ${after.toFixed(1)}`] : [];
  };
  return [
    ...grown('heap (MB)', ({ heapMB }) => heapMB, HEAP_GROWTH_MB),
    ...grown('descriptors', ({ descriptors }) => descriptors, DESCRIPTOR_GROWTH),
  ];
}
