import { expect, jest, test } from '@jest/globals';

import { holderOf } from '../../../../pkg/kube/leader/lease.ts';
import { shardOfLease } from '../../../../pkg/operator/cells/lease-names.ts';
import { sampled } from '../../../expect/sampled.ts';
import { MachinesWorld } from '../../world/machines-world.ts';
import { Cell } from './cell.ts';
import { Cells, withCells } from './cells-world.ts';

// Seconds of the processor, which a busy host takes long to give: a life is bounded by its own time.
jest.setTimeout(600_000);

const MINUTE_MS = 60_000;
const NAMES = ['cell-1', 'cell-2', 'cell-3'];
/** So many that some would move more often by chance. */
const SHARDS = 40;
const LEASES = {
  'leader-elect': 'true',
  'leader-elect-lease-duration': '60s',
  'leader-elect-renew-deadline': '45s',
  'leader-elect-retry-period': '10s',
};

const PAUSES = sampled({
  name: 'rolling upgrades of a manager of cells',
  rows: [
    { what: 'at once', pauseMs: 0 },
    { what: 'after ten minutes', pauseMs: 10 * MINUTE_MS },
  ],
  nameOf: ({ what }) => what,
  kindsOf: () => ['upgrade'],
});

test.each(PAUSES)(
  'a rolling upgrade whose next replica comes $what moves each shard once or twice, and no VM is made or lost',
  async ({ pauseMs }) => {
    const plan = { names: NAMES, shards: SHARDS, managers: 3 };
    await using world = await MachinesWorld.create(withCells({ seed: 2, flags: LEASES }, plan));
    const { time, processes } = world;
    const cells: Cell[] = [];
    for (const name of NAMES) cells.push(await Cell.create(world, name, SHARDS, { replicas: 2 }));
    for (const cell of cells) cell.setRight();
    while (processes.lacksOne) await processes.start({ version: '1' });
    const population = new Cells(world, cells, () => 1);
    const history = new Map<number, string[]>();
    const advance = async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += 1_000) {
        await time.advance(1_000);
        population.ledger.look();
        for (const lease of world.leases) noteHolder(history, shardOfLease(lease.metadata.name), holderOf(lease));
      }
    };
    await advance(20 * MINUTE_MS);
    expect(population.isAsAsked()).toBe(true);
    population.settle();
    const former = processes.running;
    for (const holders of history.values()) holders.splice(0, holders.length - 1);

    for (const process of former) {
      await processes.start({ version: '2' });
      await advance(MINUTE_MS + pauseMs);
      process.terminate();
      while (process.exitCode === undefined) await advance(1_000);
      await advance(pauseMs);
    }
    await advance(20 * MINUTE_MS);

    const moves = [...history.values()].map((holders) => holders.length - 1);
    expect(moves).toHaveLength(SHARDS);
    for (const count of moves) expect([1, 2]).toContain(count);
    const present = processes.running.map(({ identity }) => identity);
    for (const holders of history.values()) expect(present).toContain(holders.at(-1));
    expect(population.ledger.findings).toEqual([]);
    expect(cells.map(({ pool }) => pool.ledger.vmsMade)).toEqual([2, 2, 2]);
  },
);

/** One that nobody holds has no new holder. */
function noteHolder(history: Map<number, string[]>, shard: number | undefined, holder: string): void {
  if (shard === undefined || holder === '') return;
  const holders = history.get(shard) ?? [];
  history.set(shard, holders);
  if (holders.at(-1) !== holder) holders.push(holder);
}
