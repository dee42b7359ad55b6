import { setTimeout as sleep } from 'node:timers/promises';

import { quiet } from '../meter.ts';
import { countRequests, difference } from '../request-count.ts';
import { timed } from '../workload.ts';
import { CellsBed, type CellsBedOptions } from './bed.ts';
import { type Figure, figure } from './figures.ts';
import { besideRollout } from './beside.ts';
import type { MeasuredManager } from './manager.ts';

/** What is measured. */
export interface CellsRun extends CellsBedOptions {
  readonly cells: number;
  /** Machines of each. */
  readonly machines: number;
  /** Cells that come and go. */
  readonly churn: number;
  /** Cells that are managed by one process and by a process each, side by side. */
  readonly apart: number;
  /** Machines that one cell creates and rolls out beside others. */
  readonly beside: number;
  /** Single machines of others whose waits are measured, alone and beside a rollout, at least. */
  readonly waits: number;
  /** Seconds for which nothing happens. */
  readonly restSeconds: number;
  /**
   * Seconds after the last write: until Events are sent, watches that began with a list go on as others, and connections that nobody uses are
   * closed.
   */
  readonly settleSeconds: number;
  readonly log: (figure: Figure) => void;
}

const LOOK_MS = 200;
/** Cells that are added one by one to those that there are. */
const NEW_CELLS = 10;
/** Cells that come and go at once, at most. */
const BATCH = 20;
const SCRAPES = 5;

/** Measures a process with so many cells, and resolves with what it cost. */
export async function measureCells(run: CellsRun): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  const note = (...noted: readonly Figure[]): void => {
    for (const one of noted) run.log(one);
    figures.push(...noted);
  };
  await using bed = await CellsBed.start(run);
  const names = namesOf('cell', run.cells);
  await bed.addNamespaces(names);
  {
    await using manager = await bed.startManager();
    await answers(manager);
    note(...(await grow(bed, manager, names, run)));
    note(...(await rest(bed, manager, names, run)));
    note(...(await scrape(manager)));
    note(...(await comeNew(bed)));
    if (run.beside > 0) note(...(await besideRollout(bed, run.beside, run.waits)));
    if (run.churn > 0) note(...(await churn(bed, manager, names, run)));
  }
  if (run.apart > 0) note(...(await apart(bed, run)));
  return figures;
}

/** Half of the cells, then the other half: what the second half adds is what a further cell costs. */
async function grow(
  bed: CellsBed,
  manager: MeasuredManager,
  names: readonly string[],
  { machines, settleSeconds }: CellsRun,
): Promise<readonly Figure[]> {
  const settle = async (): Promise<void> => {
    await sleep(1_000 * settleSeconds);
    await quiet(bed);
  };
  const half = Math.ceil(names.length / 2);
  const emptyMB = manager.residentMB;
  const cpu = manager.cpuSeconds;
  const first = await created(bed, names.slice(0, half), half * machines, machines);
  await settle();
  const halfMB = manager.residentMB;
  const second = await created(bed, names.slice(half), names.length * machines, machines);
  const cpuMs = (1_000 * (manager.cpuSeconds - cpu)) / (names.length * machines);
  await settle();
  const further = (manager.residentMB - halfMB) / (names.length - half);
  return [
    figure('machines created per second', (names.length * machines) / (first + second)),
    figure('CPU of the manager for each', cpuMs, 'ms'),
    figure('memory without cells', emptyMB, 'MB'),
    figure('memory with all cells', manager.residentMB, 'MB'),
    figure('memory of a further cell', further, 'MB'),
  ];
}

async function created(bed: CellsBed, names: readonly string[], running: number, machines: number): Promise<number> {
  return await timed(async () => {
    await bed.scale(names, machines);
    await bed.select(names, true);
    while ((await bed.running()) < running) await sleep(LOOK_MS);
  });
}

async function rest(
  bed: CellsBed,
  manager: MeasuredManager,
  names: readonly string[],
  { restSeconds }: CellsRun,
): Promise<readonly Figure[]> {
  const [server, own] = [await countRequests(bed.api), await manager.requests()];
  const cpu = manager.cpuSeconds;
  await sleep(1_000 * restSeconds);
  const used = manager.cpuSeconds - cpu;
  const ofControl = difference(server, await countRequests(bed.api)).filter(([key]) => !/^(GET|LIST) /.test(key));
  const sent = await manager.requests();
  const perMinute = (method: string): number => ((sent[method] ?? 0) - (own[method] ?? 0)) * (60 / restSeconds);
  const { connections, descriptors } = manager.openFiles;
  const ofTargets = names.map((name) => connections.get(bed.portOf(name)) ?? 0);
  return [
    figure('CPU at rest', (100 * used) / restSeconds, '% of a core'),
    figure(
      'writes at rest, without Leases',
      ofControl.reduce((sum, [, count]) => sum + count, 0),
    ),
    figure('writes for Leases', perMinute('PUT'), 'a minute'),
    figure('reads, probes and watches of a cell', perMinute('GET') / names.length, 'a minute'),
    figure('connections to a target, most', Math.max(...ofTargets)),
    figure('connections to a target, mean', ofTargets.reduce((sum, count) => sum + count, 0) / names.length),
    figure('file descriptors', descriptors),
  ];
}

async function scrape(manager: MeasuredManager): Promise<readonly Figure[]> {
  const cpu = manager.cpuSeconds;
  let text = '';
  for (let i = 0; i < SCRAPES; i++) text = await manager.metrics();
  const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length;
  return [
    figure('CPU of a scrape', (1_000 * (manager.cpuSeconds - cpu)) / SCRAPES, 'ms'),
    figure('series', series),
    figure('size of a scrape', text.length / 1_000_000, 'MB'),
  ];
}

/** One by one, each with a machine that it begins with. */
async function comeNew(bed: CellsBed): Promise<readonly Figure[]> {
  const names = namesOf('new', NEW_CELLS);
  await bed.addNamespaces(names);
  await bed.scale(names, 1);
  const seconds: number[] = [];
  for (const name of names) {
    seconds.push(
      await timed(async () => {
        await bed.select([name], true);
        while (((await bed.targets.calls(name))['CreateMachine'] ?? 0) === 0) await sleep(LOOK_MS / 10);
      }),
    );
  }
  const sorted = seconds.toSorted((a, b) => a - b);
  return [
    figure('from label to CreateMachine, median', sorted[Math.floor(sorted.length / 2)] ?? 0, 's'),
    figure('from label to CreateMachine, worst', sorted.at(-1) ?? 0, 's'),
  ];
}

/** Cells without machines, which come and go; the others stay. */
async function churn(
  bed: CellsBed,
  manager: MeasuredManager,
  others: readonly string[],
  run: CellsRun,
): Promise<readonly Figure[]> {
  const batch = Math.min(BATCH, run.churn);
  const names = namesOf('fleeting', batch);
  const rounds = Math.ceil(run.churn / batch);
  await bed.addNamespaces(names);
  const present = others.length + NEW_CELLS;
  await comeAndGo(bed, manager, names, present, 2);
  const before = await left(manager, run);
  const seconds = await timed(() => comeAndGo(bed, manager, names, present, rounds));
  const after = await left(manager, run);
  const cells = rounds * batch;
  return [
    figure('cells that came and went', cells),
    figure('seconds for each', seconds / cells, 's'),
    figure('heap left by each', (1_000 * (after.heapMB - before.heapMB)) / cells, 'kB'),
    figure('memory left by each', (1_000 * (after.residentMB - before.residentMB)) / cells, 'kB'),
    figure('descriptors left by all', after.descriptors - before.descriptors),
    figure('timers and handles left by all', after.resources - before.resources),
    figure('series left by all', after.series - before.series),
  ];
}

async function comeAndGo(
  bed: CellsBed,
  manager: MeasuredManager,
  names: readonly string[],
  others: number,
  rounds: number,
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    await bed.select(names, true);
    await runs(manager, others + names.length);
    await bed.select(names, false);
    await runs(manager, others);
  }
}

async function left(manager: MeasuredManager, { settleSeconds }: CellsRun) {
  await sleep(1_000 * settleSeconds);
  const { heapUsed, external, resources } = await manager.heap();
  const text = await manager.metrics();
  return {
    heapMB: (heapUsed + external) / 1_000_000,
    residentMB: manager.residentMB,
    descriptors: manager.openFiles.descriptors,
    resources,
    series: text.split('\n').length,
  };
}

/** The same work by one process with cells, and by a process for each. */
async function apart(bed: CellsBed, { apart: count, machines, settleSeconds }: CellsRun): Promise<readonly Figure[]> {
  const settle = async (): Promise<void> => {
    await sleep(1_000 * settleSeconds);
    await quiet(bed);
  };
  const together = namesOf('together', count);
  const alone = namesOf('alone', count);
  await bed.addNamespaces([...together, ...alone]);
  const all = async (): Promise<number> => await bed.running();
  const work = async (names: readonly string[], managers: readonly MeasuredManager[]) => {
    await settle();
    const before = await all();
    const sumOf = (of: (manager: MeasuredManager) => number): number =>
      managers.reduce((sum, manager) => sum + of(manager), 0);
    const cpu = sumOf((manager) => manager.cpuSeconds);
    const requests = await countRequests(bed.api);
    const seconds = await timed(async () => {
      await bed.scale(names, machines);
      while ((await all()) < before + names.length * machines) await sleep(LOOK_MS);
    });
    await settle();
    const sent = difference(requests, await countRequests(bed.api)).filter(([key]) => key !== 'LIST machines');
    return {
      seconds,
      cpuSeconds: sumOf((manager) => manager.cpuSeconds) - cpu,
      residentMB: sumOf((manager) => manager.residentMB),
      requests: sent.reduce((sum, [, requestCount]) => sum + requestCount, 0),
    };
  };
  const asOne = await (async () => {
    await using manager = await bed.startManager();
    await answers(manager);
    await bed.select(together, true);
    return await work(together, [manager]);
  })();
  const asMany = await (async () => {
    await using stack = new AsyncDisposableStack();
    const managers: MeasuredManager[] = [];
    for (const name of alone) {
      const manager = stack.use(await bed.startSingle(name));
      await answers(manager);
      managers.push(manager);
    }
    return await work(alone, managers);
  })();
  const both = (name: string, of: (one: typeof asOne) => number, unit: string): readonly Figure[] => [
    figure(`${name}, one process for ${count}`, of(asOne), unit),
    figure(`${name}, ${count} processes`, of(asMany), unit),
  ];
  return [
    ...both('creation', ({ seconds }) => seconds, 's'),
    ...both('CPU', ({ cpuSeconds }) => cpuSeconds, 's'),
    ...both('memory', ({ residentMB }) => residentMB, 'MB'),
    ...both('requests', ({ requests }) => requests, ''),
  ];
}

/** Resolves when the manager has so many cells. */
async function runs(manager: MeasuredManager, cells: number): Promise<void> {
  const line = new RegExp(`^machinist_cells\\{state="running"\\} ${cells}$`, 'm');
  while (!line.test(await manager.metrics())) await sleep(LOOK_MS);
}

async function answers(manager: MeasuredManager): Promise<void> {
  for (;;) {
    try {
      await manager.metrics();
      return;
    } catch {
      if (!manager.isRunning) throw new Error('the manager has ended, see its log');
      await sleep(LOOK_MS);
    }
  }
}

function namesOf(prefix: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}-${i}`);
}
