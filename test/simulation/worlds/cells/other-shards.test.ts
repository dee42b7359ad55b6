import { expect, jest, test } from '@jest/globals';

import { holderOf } from '../../../../pkg/kube/leader/lease.ts';
import { shardOfLease } from '../../../../pkg/operator/cells/lease-names.ts';
import { MachinesWorld } from '../../world/machines-world.ts';
import { Cell } from './cell.ts';
import { withCells } from './cells-world.ts';

// Seconds of the processor, which a busy host takes long to give: a life is bounded by its own time.
jest.setTimeout(300_000);

const MINUTE_MS = 60_000;
const SHARDS = 3;
const LEASES = { 'leader-elect': 'true' };

test.each([1, 2, 3, 4, 5, 6, 7, 8])(
  'of replicas with other numbers of shards that start together, those of one number take none (seed %i)',
  async (seed) => {
    const plan = { names: ['cell-1'], shards: SHARDS, managers: 2 };
    await using world = await MachinesWorld.create(withCells({ seed, flags: LEASES }, plan));
    const { time, processes } = world;
    const cell = await Cell.create(world, 'cell-1', SHARDS, { replicas: 1 });
    cell.setRight();

    await Promise.all([processes.start(), processes.start({ flags: { 'cell-shards': '7' } })]);
    await time.advance(10 * MINUTE_MS);

    const holders = world.leases.flatMap((lease) =>
      shardOfLease(lease.metadata.name) === undefined ? [] : [holderOf(lease)],
    );
    expect(new Set(holders).size).toBeLessThan(2);
  },
);
