import { setTimeout as sleep } from 'node:timers/promises';

import { eventually } from '../../../test/expect/eventually.ts';
import type { CellsBed } from './bed.ts';
import { type Figure, figure } from './figures.ts';
import { FirstWrites } from './first-writes.ts';

/** Cells with one machine each, which is replaced again and again; fewer where so many would each be measured less than twice. */
const SINGLE = 10;
/** A watch tells how long machines wait: to look more often would only be work for the server that is measured. */
const LOOK_MS = 200;
/** Between two replacements of a cell, which would else create more in a minute than its brake allows. */
const REST_MS = 2_500;
/** A replacement that takes so long never ends. */
const PATIENCE = { timeoutMs: 120_000, intervalMs: LOOK_MS };

/** How long the machine of a cell waits for its turn, between the answer of CreateMachine and what is written next about it. */
interface Waits {
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly count: number;
}

/** How much a cell that creates and rolls out so many machines delays single machines of others, of which at least `waits` are measured. */
export async function besideRollout(bed: CellsBed, machines: number, waits: number): Promise<readonly Figure[]> {
  const large = 'large';
  const cells = Math.min(SINGLE, Math.ceil(waits / 2));
  const single = Array.from({ length: cells }, (_, i) => `single-${i}`);
  await bed.addNamespaces([large, ...single]);
  await bed.scale(single, 1);
  await bed.select([large, ...single], true);
  await using writes = new FirstWrites(bed.connection, single);
  const alone = await during(bed, writes, single, async (measured) => {
    while (measured() < waits) await sleep(LOOK_MS);
  });
  const created = await during(bed, writes, single, async () => {
    await bed.scale([large], machines);
    while ((await bed.poolOf(large)).available < machines) await sleep(LOOK_MS);
  });
  const rolled = await during(bed, writes, single, async (measured) => {
    // A small one is over before any machine of another cell is replaced.
    for (let round = 0; measured() < waits; round++) {
      await bed.roll(large, round);
      while ((await bed.poolOf(large)).upToDate < machines) await sleep(LOOK_MS);
    }
  });
  await bed.select([large, ...single], false);
  return [
    ...figuresOf('alone', alone),
    ...figuresOf(`beside the creation of ${machines}`, created),
    ...figuresOf(`beside the rollout of ${machines}`, rolled),
  ];
}

/** The waits of the machines that took the place of others while something happened, which is told how many there are so far. */
async function during(
  bed: CellsBed,
  writes: FirstWrites,
  namespaces: readonly string[],
  what: (measured: () => number) => Promise<void>,
): Promise<Waits> {
  const over = new AbortController();
  const waitsMs: number[] = [];
  const replacing = Promise.all(
    namespaces.map(async (namespace) => {
      while (!over.signal.aborted) {
        const waitMs = await replaceOne(bed, writes, namespace);
        if (!over.signal.aborted) waitsMs.push(waitMs);
        await sleep(REST_MS);
      }
    }),
  );
  try {
    await Promise.race([what(() => waitsMs.length), replacing]);
  } finally {
    over.abort();
  }
  // Whoever measures next finds a machine in each.
  await replacing;
  waitsMs.sort((a, b) => a - b);
  const at = (share: number): number => waitsMs[Math.min(waitsMs.length - 1, Math.floor(waitsMs.length * share))] ?? 0;
  return { medianMs: at(0.5), p99Ms: at(0.99), count: waitsMs.length };
}

/**
 * Replaces the machine of a cell, and resolves with the wait of the next one when that runs. Only one that runs is deleted, by its name: of one
 * that is deleted while its VM is created, it may be that nothing is ever written about the VM.
 */
async function replaceOne(bed: CellsBed, writes: FirstWrites, namespace: string): Promise<number> {
  const running = async (but?: string): Promise<string> => {
    const machine = (await bed.runningIn(namespace)).find((name) => name !== but);
    if (machine === undefined) throw new Error(`no other machine runs in namespace ${namespace}`);
    return machine;
  };
  const old = await eventually(() => running(), PATIENCE);
  await bed.deleteMachine(namespace, old);
  const next = await eventually(() => running(old), PATIENCE);
  const vm = (await bed.targets.created(namespace)).find(({ machine }) => machine === next);
  if (vm === undefined) throw new Error(`the driver did not create a VM for machine ${namespace}/${next}`);
  const seenMs = await eventually(() => writes.of(next) ?? false, PATIENCE);
  return Math.max(0, Number(seenMs) - vm.atMs);
}

function figuresOf(when: string, { medianMs, p99Ms, count }: Waits): readonly Figure[] {
  return [
    figure(`machines of other cells created ${when}`, count),
    figure(`from VM to the next write ${when}, median`, medianMs, 'ms'),
    figure(`from VM to the next write ${when}, 99th percentile`, p99Ms, 'ms'),
  ];
}
