import { setTimeout as sleep } from 'node:timers/promises';

import type { Api } from '../control-plane/api.ts';
import { countPasses } from './pass-count.ts';
import { resetPeak, usageOf } from './process-usage.ts';
import { countRequests, difference, sumOf } from './request-count.ts';

/** Reads by the benchmark itself, which polls one MachineDeployment and lists Machines at the end of a stage. */
const OWN = new Set(['GET machinedeployments', 'LIST machines']);
/** Status writes and Events that trail behind. */
const SETTLE_MS = 2_000;

/** What is measured. */
export interface MeterParts {
  readonly api: Api;
  /** Where the manager serves its metrics. */
  readonly port: number;
  /** Processes under measurement by name. */
  readonly pids: Readonly<Record<string, number>>;
}

/** Tells what each stage of a run costs. */
export class Meter {
  readonly #parts: MeterParts;
  readonly #peaks = new Map<string, number>();

  constructor(parts: MeterParts) {
    this.#parts = parts;
  }

  /** Runs a stage about `machines` machines that resolves with its seconds, tells its cost, and resolves with its requests. */
  async measure(name: string, machines: number, run: () => Promise<number>): Promise<[string, number][]> {
    const { api, port, pids } = this.#parts;
    for (const pid of Object.values(pids)) resetPeak(pid);
    const [requests, passes] = [await countRequests(api), await countPasses(port)];
    const cpu = new Map(Object.entries(pids).map(([key, pid]) => [key, usageOf(pid).cpuSeconds]));

    const seconds = await run();
    await sleep(SETTLE_MS);

    const rows = difference(requests, await countRequests(api)).filter(([key]) => !OWN.has(key));
    const each = (count: number): string => `${count} (${(count / machines).toFixed(2)} each)`;
    console.log(`${name}: ${seconds.toFixed(1)} s, requests ${each(sumOf(rows))}`);
    for (const [key, count] of rows) console.log(`  ${String(count).padStart(6)}  ${key}`);
    for (const [key, count] of difference(passes, await countPasses(port))) {
      console.log(`  passes of ${key}: ${each(count)}`);
    }
    for (const [key, pid] of Object.entries(pids)) {
      const { peakMB, residentMB, cpuSeconds } = usageOf(pid);
      const used = cpuSeconds - (cpu.get(key) ?? 0);
      this.#peaks.set(key, Math.max(peakMB, this.#peaks.get(key) ?? 0));
      console.log(`  ${key}: peak ${peakMB.toFixed(0)} MB, now ${residentMB.toFixed(0)} MB, CPU ${used.toFixed(1)} s`);
    }
    return rows;
  }

  /** Resolves when nobody has written anything for two seconds: Events may trail behind a stage. */
  async quiet(): Promise<void> {
    const { api } = this.#parts;
    for (let before = await countRequests(api); ;) {
      await sleep(SETTLE_MS);
      const now = await countRequests(api);
      if (writesAmong(difference(before, now)).length === 0) return;
      before = now;
    }
  }

  /** Tells what the whole run came to. */
  conclude(): void {
    for (const [key, pid] of Object.entries(this.#parts.pids)) {
      const { cpuSeconds } = usageOf(pid);
      console.log(`${key}: peak ${(this.#peaks.get(key) ?? 0).toFixed(0)} MB, CPU ${cpuSeconds.toFixed(1)} s in all`);
    }
  }
}

/** What of a difference changes something. */
export function writesAmong(rows: readonly [string, number][]): [string, number][] {
  return rows.filter(([key]) => !/^(GET|LIST) /.test(key));
}
