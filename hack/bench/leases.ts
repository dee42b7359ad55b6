import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import PQueue from 'p-queue';

import type { Api } from '../control-plane/api.ts';
import { applyManifests, parseManifests } from '../control-plane/apply.ts';
import { number, readOptions, text } from '../options.ts';
import { MANIFEST_FLAGS, startBed } from './bed.ts';
import { secondsIn, worstSince } from './loop-delays.ts';
import { usageOf } from './process-usage.ts';
import { scale, WORKLOAD } from './workload.ts';

/**
 * How late Leases are renewed while many objects arrive: 10,000 Nodes are made while machines are created, the manager is
 * started again with all of them there, and everything is rolled by beside processes that want the CPU too. Tells how late
 * the event loop was, the longest time between two renewals (2 s are asked for, 10 s end leadership), and the memory.
 */
const { nodes, machines, burners, built } = readOptions(
  'Measures how late Leases are renewed while many objects arrive.',
  {
    nodes: number('Nodes created', 10_000),
    machines: number('machines created at the same time', 200),
    burners: number('processes that compete for the CPU', 0),
    built: text('folder with programs of `npm run build` to run; the sources by default'),
  },
);
const PADDING = 'x'.repeat(4_000);
const STARTUP_MS = 20_000;

await using bed = await startBed({ built, managerNodeFlags: MANIFEST_FLAGS.split(' '), credentials: 'user' });
const { api, logs, loopDelayFile, leases } = bed;
await applyManifests(api, parseManifests(WORKLOAD));
const burning = Array.from({ length: burners }, () => spawn(process.execPath, ['-e', 'for(;;);']));

async function addNodes(to: Api, count: number): Promise<void> {
  const queue = new PQueue({ concurrency: 16 });
  for (let i = 0; i < count; i++) {
    void queue.add(() =>
      to.request('/api/v1/nodes', {
        method: 'POST',
        body: {
          metadata: { name: `bench-${i}`, annotations: { padding: PADDING } },
          spec: { providerID: `x:///${i}` },
        },
      }),
    );
  }
  await queue.onIdle();
}

async function measure(what: string, work: () => Promise<unknown>): Promise<void> {
  leases.reset();
  const pid = bed.pids.manager;
  const cpu = usageOf(pid).cpuSeconds;
  const begun = secondsIn(loopDelayFile);
  await work();
  const { peakMB, residentMB, cpuSeconds } = usageOf(pid);
  const delay = worstSince(loopDelayFile, begun);
  console.log(`${what}: longest between renewals ${leases.longestMs()} ms; event loop late by up to ${delay} ms`);
  console.log(
    `  peak ${peakMB.toFixed(0)} MB, now ${residentMB.toFixed(0)} MB, CPU ${(cpuSeconds - cpu).toFixed(1)} s`,
  );
}

try {
  await sleep(STARTUP_MS / 2);
  await measure('nodes arrive', async () => {
    const arriving = addNodes(api, nodes);
    await scale(api, machines);
    await arriving;
  });
  await bed.restartManager();
  await measure('started again', () => sleep(STARTUP_MS));
  await measure('machines go', () => scale(api, 0));
  const lost = readFileSync(path.join(logs, 'machinist.log'), 'utf8').split('lost leadership').length - 1;
  console.log(`leadership lost: ${lost} times`);
} finally {
  for (const burner of burning) burner.kill('SIGKILL');
}
