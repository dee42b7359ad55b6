import { expect, jest, test } from '@jest/globals';

import { holderOf } from '../../../../pkg/kube/leader/lease.ts';
import { shardOfLease } from '../../../../pkg/operator/cells/lease-names.ts';
import { RunningCell } from '../../../../pkg/operator/cells/running-cell.ts';
import { MachinesWorld } from '../../world/machines-world.ts';
import { Cell } from './cell.ts';
import { withCells } from './cells-world.ts';

// Seconds of the processor, which a busy host takes long to give: a life is bounded by its own time.
jest.setTimeout(300_000);

const MINUTE_MS = 60_000;
const STEP_MS = 100;
/** A Lease that is not given up lasts longer. */
const RUN_OUT_MS = 5_000;
const SHARDS = 3;
const NAMES = ['cell-1', 'cell-2', 'cell-3', 'cell-4'];

test('the Lease of a shard with a cell that does not end in time runs out after the end of the process, and those of other shards are given up before', async () => {
  const plan = { names: NAMES, shards: SHARDS, managers: 1 };
  await using world = await MachinesWorld.create(withCells({ seed: 1, flags: { 'leader-elect': 'true' } }, plan));
  const { time, processes } = world;
  for (const name of NAMES) (await Cell.create(world, name, SHARDS, { replicas: 1 })).setRight();
  const former = await processes.start();
  await time.advance(5 * MINUTE_MS);
  expect(former.cells?.running.size).toBe(NAMES.length);
  // Those of the first shard that is handed over hang.
  const hanging = new Set<number>();
  const end: (this: RunningCell, graceMs: number) => Promise<void> = Reflect.get(RunningCell.prototype, 'end');
  using _spy = jest.spyOn(RunningCell.prototype, 'end').mockImplementation(async function (this: RunningCell, graceMs) {
    if (hanging.size === 0) hanging.add(this.shard.index);
    if (hanging.has(this.shard.index)) await new Promise(() => undefined);
    await end.call(this, graceMs);
  });

  const next = await processes.start();
  const taken = new Map<number, string>();
  let sinceMs = -Infinity;
  for (let ms = 0; ms < 3 * MINUTE_MS; ms += STEP_MS) {
    await time.advance(STEP_MS);
    if (former.exitCode !== undefined && sinceMs < 0) {
      former.kill();
      sinceMs = ms;
    }
    for (const lease of world.leases) {
      const shard = shardOfLease(lease.metadata.name);
      if (shard === undefined || taken.has(shard) || holderOf(lease) !== next.identity) continue;
      const when =
        sinceMs < 0 ? 'before it ended' : ms - sinceMs < RUN_OUT_MS ? 'as it ended' : 'when the Lease ran out';
      taken.set(shard, `${hanging.has(shard) ? 'hanging' : 'other'}: ${when}`);
    }
  }

  expect(former.exitCode).toBe(1);
  expect([...taken.values()].toSorted()).toEqual([
    'hanging: when the Lease ran out',
    'other: before it ended',
    'other: before it ended',
  ]);
});
