import { expect, jest, test } from '@jest/globals';

import { sampled } from '../../../expect/sampled.ts';
import { faultRows } from '../../../faults/fault-rows.ts';
import { MachinesWorld } from '../../world/machines-world.ts';
import { Cell } from './cell.ts';
import { CELL_FAULTS, type CellFault, DISTURBANCES, driverFault } from './cell-faults.ts';
import { Cells, withCells } from './cells-world.ts';

/*
 * Of three cells one has a fault, of the fault table or of its own target cluster: the other two are rolled and shrunk meanwhile, as fast, and
 * with as many VMs, as without it. The same where all have one target cluster, of what is not that cluster's.
 */

// Seconds of the processor, which a busy host takes long to give: a life is bounded by its own time.
jest.setTimeout(900_000);

const MINUTE_MS = 60_000;
const NAMES = ['cell-1', 'cell-2', 'cell-3'];
const SHARDS = 3;
const MACHINES = 2;
/** Of the other cells, at most. */
const LATE_MS = 2 * MINUTE_MS;
const LEASES = {
  'leader-elect': 'true',
  'leader-elect-lease-duration': '60s',
  'leader-elect-renew-deadline': '45s',
  'leader-elect-retry-period': '10s',
};
/** Rows of the fault table that concern the whole process. */
const OF_PROCESS = ['the wall clock jumps forward and back', 'the clock of the host is an hour behind'];

interface Row {
  readonly what: string;
  readonly kind: string;
  readonly fault: CellFault;
}

const TABLE = faultRows(MACHINES, MINUTE_MS);
const ROWS: readonly Row[] = [
  ...TABLE.flatMap(({ what, kind = 'others', faults }) => {
    const fault = DISTURBANCES[what] ?? (faults && driverFault(faults));
    return fault === undefined ? [] : [{ what, kind, fault }];
  }),
  ...Object.entries(CELL_FAULTS).map(([what, fault]) => ({ what, kind: 'the cell', fault })),
];

/** Rows that concern Nodes, which are in the one target cluster of all. */
const OF_NODES = ['all Nodes of the zone are away at once', 'half of the Nodes are away'];
const SHARED_ROWS = ROWS.filter(({ what }) => CELL_FAULTS[what] === undefined && !OF_NODES.includes(what));

/** What came of it. */
interface Life {
  /** Of the two that have no fault. */
  readonly vmsMade: readonly number[];
  /** How long they took. */
  readonly ms: number;
  readonly findings: readonly string[];
}

async function live(shareTarget: boolean, fault: CellFault = () => () => undefined): Promise<Life> {
  const plan = { names: NAMES, shards: SHARDS, managers: 2, shareTarget };
  await using world = await MachinesWorld.create(withCells({ seed: 1, flags: LEASES }, plan));
  const { time, processes } = world;
  const cells: Cell[] = [];
  for (const name of NAMES) cells.push(await Cell.create(world, name, SHARDS, { replicas: MACHINES }));
  for (const cell of cells) cell.setRight();
  while (processes.lacksOne) await processes.start();
  const population = new Cells(world, cells, () => 1);
  const { ledger } = population;
  const [faulty, ...others] = cells;
  if (faulty === undefined) throw new Error('there is no cell');

  const until = async (what: string, withinMs: number, isSo: () => boolean): Promise<void> => {
    const untilMs = time.elapsedMs + withinMs;
    while (time.elapsedMs < untilMs && !isSo()) {
      await time.advance(1_000);
      ledger.look();
    }
    if (!isSo()) ledger.find(`${what}: ${population.shown()}`);
  };
  const areAsAsked = (): boolean => others.every(({ pool }) => pool.isAsAsked());
  await until('the cells do not come up', 30 * MINUTE_MS, () => population.isAsAsked());
  population.settle();
  population.troubleAt(0);
  const end = fault(faulty, others);
  const sinceMs = time.elapsedMs;
  for (const { world: cell } of cells) {
    if (cell !== faulty.world || faulty.isThere) {
      cell.changePool({ spec: { template: { metadata: { annotations: { version: '2' } } } } });
    }
  }
  await until('the others are not rolled', 60 * MINUTE_MS, areAsAsked);
  for (const { pool, world: cell } of others) {
    pool.settle();
    cell.changePool({ spec: { replicas: 1 } });
  }
  await until('the others are not shrunk', 30 * MINUTE_MS, areAsAsked);
  const ms = time.elapsedMs - sinceMs;
  end();
  population.troubleAt(undefined);
  await until('the cell does not recover', 90 * MINUTE_MS, () => population.isAsAsked());
  population.end();
  await until('something is left', 60 * MINUTE_MS, () => population.left().length === 0);
  return { vmsMade: others.map(({ pool }) => pool.ledger.vmsMade), ms, findings: ledger.findings };
}

test('each row of the fault table is one of a cell, or of the whole process', () => {
  const missing = TABLE.map(({ what }) => what).filter((what) => !ROWS.some((row) => row.what === what));

  expect(missing).toEqual(OF_PROCESS);
});

test.each([
  { which: 'with target clusters of their own', shareTarget: false, all: ROWS, least: 5 },
  { which: 'with one target cluster', shareTarget: true, all: SHARED_ROWS, least: 3 },
])('a fault of one cell changes nothing in the others, and the cell recovers: $which', async (given) => {
  const { which, shareTarget, all, least } = given;
  const rows = sampled({
    name: `faults of one cell of three ${which}`,
    rows: all,
    nameOf: ({ what }) => what,
    kindsOf: ({ kind }) => [kind],
    least,
  });
  const without = await live(shareTarget);
  const lives: (Life & { readonly what: string })[] = [];
  for (const { what, fault } of rows) lives.push({ what, ...(await live(shareTarget, fault)) });

  expect(without).toMatchObject({ vmsMade: [4, 4], findings: [] });
  expect(lives.filter(({ findings }) => findings.length > 0)).toEqual([]);
  expect(lives.filter(({ vmsMade }) => vmsMade.join() !== without.vmsMade.join())).toEqual([]);
  expect(lives.filter(({ ms }) => ms > without.ms + LATE_MS)).toEqual([]);
});
