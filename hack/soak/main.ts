import { createHash } from 'node:crypto';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

import { startBed } from '../bench/bed.ts';
import { applyManifests, parseManifests } from '../control-plane/apply.ts';
import { number, readOptions, text } from '../options.ts';
import { Cutter } from './cutter.ts';
import { Life, WORKLOAD } from './life.ts';
import { GC_FLAGS, growthIn, type Sample, takeSample } from './sample.ts';

/**
 * Random life for as long as asked for, while connections to the API server are cut: machines come, go, roll, and lose their VMs.
 * Again and again it is left in peace until everything is exactly as asked for, and what the manager holds is noted. Fails when
 * it does not come to rest (an event was missed), or when heap or descriptors have grown.
 */
const options = readOptions('Random life of machines while connections to the API server are cut.', {
  minutes: number('minutes to run', 60),
  machines: number('maximum number of machines', 30),
  seed: text('seed of the random actions', 'soak'),
  logs: text('folder for logs; a new one by default'),
});
const { machines: most, seed } = options;
const untilMs = performance.now() + options.minutes * 60_000;

/** Acts between two moments of rest, and how long they take. */
const ACTS = 8;
const LONGEST_PAUSE_MS = 3_000;
const PATIENCE_MS = 300_000;

let questions = 0;
function random(): number {
  const digest = createHash('sha256').update(`${seed}/${questions++}`).digest();
  return digest.readUIntBE(0, 6) / 2 ** 48;
}

async function rest(life: Life): Promise<void> {
  const deadlineMs = performance.now() + PATIENCE_MS;
  let difference = await life.difference();
  while (difference !== undefined) {
    if (performance.now() > deadlineMs) throw new Error(`did not come to rest: ${difference}; logs: ${logs}`);
    await sleep(500);
    difference = await life.difference();
  }
}

// Ends after the manager, which could not end in order without it.
using cutters = new DisposableStack();
let cutter: Cutter | undefined;
await using bed = await startBed({
  credentials: 'user',
  managerURL: async (url) => {
    cutter = cutters.adopt(await Cutter.start(url), (one) => one.stop());
    return cutter.url;
  },
  managerNodeFlags: GC_FLAGS,
  managerFlags: [
    '--leader-elect=false',
    '--machine-safety-grace=0s',
    '--machine-safety-orphan-vms-period=5s',
    '--machine-safety-orphan-vms-grace=3s',
  ],
  logs: options.logs,
});
const { api, cloud, logs, port } = bed;
const samples: Sample[] = [];
let [acts, cuts] = [0, 0];
await applyManifests(api, parseManifests(WORKLOAD));
const life = new Life(api, cloud, random);
const startedMs = performance.now();
while (performance.now() < untilMs) {
  for (let i = 0; i < ACTS; i++) {
    await life.act(most);
    acts += 1;
    await sleep(random() * LONGEST_PAUSE_MS);
    if (random() < 0.5) cuts += (cutter?.cut() ?? 0) > 0 ? 1 : 0;
  }
  await rest(life);
  const minute = Math.round((performance.now() - startedMs) / 6_000) / 10;
  const sample = await takeSample({ pid: bed.pids.manager, port, log: path.join(logs, 'machinist.log') }, minute);
  if (sample === undefined) continue;
  samples.push(sample);
  console.log(
    `${sample.minute} min: ${acts} acts, ${cuts} cuts, heap ${sample.heapMB.toFixed(0)} MB, resident ${sample.residentMB.toFixed(0)} MB, ${sample.descriptors} descriptors`,
  );
}
const growth = growthIn(samples);
console.log(growth.length === 0 ? 'nothing grew, no event was missed' : growth.join('; '));
process.exitCode = growth.length === 0 ? 0 : 1;
console.log(`seed: ${seed}; logs: ${logs}`);
