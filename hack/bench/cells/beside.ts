import { setTimeout as sleep } from 'node:timers/promises';

import type { CellsBed } from './bed.ts';
import { type Figure, figure } from './figures.ts';
import { FirstWrites } from './first-writes.ts';

/** Cells with one machine each, which is replaced again and again. */
const SINGLE = 10;
const LOOK_MS = 50;
/** So long they are observed while nothing else happens. */
const ALONE_MS = 30_000;

/** How long the machine of a cell waits for its turn, between the answer of CreateMachine and what is written next about it. */
interface Waits {
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly count: number;
}

/** How much a cell that creates and rolls out so many machines delays single machines of others. */
export async function besideRollout(bed: CellsBed, machines: number): Promise<readonly Figure[]> {
  const large = 'large';
  const single = Array.from({ length: SINGLE }, (_, i) => `single-${i}`);
  await bed.addNamespaces([large, ...single]);
  await bed.scale(single, 1);
  await bed.select([large, ...single], true);
  await using writes = new FirstWrites(bed.connection, single);
  const alone = await during(bed, writes, single, () => sleep(ALONE_MS));
  const created = await during(bed, writes, single, async () => {
    await bed.scale([large], machines);
    while ((await bed.poolOf(large)).available < machines) await sleep(1_000);
  });
  const rolled = await during(bed, writes, single, async () => {
    await bed.roll(large);
    while ((await bed.poolOf(large)).upToDate < machines) await sleep(1_000);
  });
  await bed.select([large, ...single], false);
  return [
    ...figuresOf('alone', alone),
    ...figuresOf(`beside the creation of ${machines}`, created),
    ...figuresOf(`beside the rollout of ${machines}`, rolled),
  ];
}

/** The waits of all machines that were created while something happened. */
async function during(
  bed: CellsBed,
  writes: FirstWrites,
  namespaces: readonly string[],
  what: () => Promise<unknown>,
): Promise<Waits> {
  const over = new AbortController();
  const answeredBefore = new Set((await answersIn(bed, namespaces)).map(({ machine }) => machine));
  const replacing = namespaces.map(async (namespace) => {
    while (!over.signal.aborted) {
      await bed.deleteMachines(namespace);
      while (!over.signal.aborted && (await bed.poolOf(namespace)).available < 1) await sleep(LOOK_MS);
    }
  });
  await what();
  over.abort();
  await Promise.all(replacing);
  const answers = (await answersIn(bed, namespaces)).filter(({ machine }) => !answeredBefore.has(machine));
  const waitsMs = answers
    .flatMap(({ machine, atMs }) => {
      const seenMs = writes.of(machine);
      return seenMs === undefined ? [] : [Math.max(0, seenMs - atMs)];
    })
    .toSorted((a, b) => a - b);
  const at = (share: number): number => waitsMs[Math.min(waitsMs.length - 1, Math.floor(waitsMs.length * share))] ?? 0;
  return { medianMs: at(0.5), p99Ms: at(0.99), count: waitsMs.length };
}

async function answersIn(bed: CellsBed, namespaces: readonly string[]) {
  return (await Promise.all(namespaces.map((namespace) => bed.targets.created(namespace)))).flat();
}

function figuresOf(when: string, { medianMs, p99Ms, count }: Waits): readonly Figure[] {
  return [
    figure(`machines of other cells created ${when}`, count),
    figure(`from VM to the next write ${when}, median`, medianMs, 'ms'),
    figure(`from VM to the next write ${when}, 99th percentile`, p99Ms, 'ms'),
  ];
}
