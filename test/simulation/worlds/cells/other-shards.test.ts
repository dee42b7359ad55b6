import { expect, jest, test } from '@jest/globals';

import { holderOf } from '../../../../pkg/kube/leader/lease.ts';
import { shardOfLease } from '../../../../pkg/operator/cells/lease-names.ts';
import { sampledSeeds } from '../../../expect/sampled.ts';
import { MachinesWorld } from '../../world/machines-world.ts';
import { Cell } from './cell.ts';
import { withCells } from './cells-world.ts';

// Seconds of the processor, which a busy host takes long to give: a life is bounded by its own time.
jest.setTimeout(300_000);

const MINUTE_MS = 60_000;
const SHARDS = 3;
const LEASES = { 'leader-elect': 'true' };
const LOOK_MS = 50;

/** A cell that a process with all shards manages, beside which one of another number waits. */
async function upgrade(world: MachinesWorld) {
  const { time, processes } = world;
  const cell = await Cell.create(world, 'cell-1', SHARDS, { replicas: 2 });
  cell.setRight();
  const former = await processes.start();
  await time.advance(10 * MINUTE_MS);
  const next = await processes.start({ flags: { 'cell-shards': '7' } });
  await time.advance(2 * MINUTE_MS);
  return { cell, former, next };
}

/** Notes who holds shards at the same time. */
async function watchHolders(world: MachinesWorld, seen: Set<string>, ms: number): Promise<void> {
  for (let i = 0; i < ms / LOOK_MS; i++) {
    await world.time.advance(LOOK_MS);
    seen.add([...holdersIn(world)].toSorted().join(' and '));
  }
}

test.each(sampledSeeds('replicas with other numbers of shards that start together', [1, 2, 3, 4, 5, 6, 7, 8], 2))(
  'of replicas with other numbers of shards that start together, those of one number take none (seed %i)',
  async (seed) => {
    const plan = { names: ['cell-1'], shards: SHARDS, managers: 2 };
    await using world = await MachinesWorld.create(withCells({ seed, flags: LEASES }, plan));
    const { time, processes } = world;
    const cell = await Cell.create(world, 'cell-1', SHARDS, { replicas: 1 });
    cell.setRight();

    await Promise.all([processes.start(), processes.start({ flags: { 'cell-shards': '7' } })]);
    await time.advance(10 * MINUTE_MS);

    expect(holdersIn(world).size).toBeLessThan(2);
  },
);

test.each(sampledSeeds('an upgrade to another number of shards', [1, 2, 3, 4]))(
  'who divides the namespaces otherwise takes no shard before the last one of the former number has left all of its own (seed %i)',
  async (seed) => {
    const plan = { names: ['cell-1'], shards: SHARDS, managers: 1 };
    await using world = await MachinesWorld.create(withCells({ seed, flags: LEASES }, plan));
    const { time } = world;
    const { cell, former, next } = await upgrade(world);
    cell.world.changePool({ spec: { replicas: 4 } });
    await time.advance(1_000);

    former.terminate();
    const seen = new Set<string>();
    await watchHolders(world, seen, 3_000 * LOOK_MS);

    expect(holdersIn(world)).toEqual(new Set([next.identity]));
    expect([...seen].filter((holders) => holders.includes(' and '))).toEqual([]);
  },
);

test.each(sampledSeeds('a Lease that is deleted during an upgrade to another number of shards', [1, 2, 3, 4]))(
  'whose Lease is deleted by hand while another number waits keeps the shards, and leaves all of them before the other takes one (seed %i)',
  async (seed) => {
    const plan = { names: ['cell-1'], shards: SHARDS, managers: 1 };
    await using world = await MachinesWorld.create(withCells({ seed, flags: LEASES }, plan));
    const { time } = world;
    const { cell, former, next } = await upgrade(world);
    const seen = new Set<string>();

    for (const { metadata } of world.leases) {
      if (!metadata.name.startsWith('machinist-replica-')) continue;
      world.act('DELETE', `/apis/coordination.k8s.io/v1/namespaces/${metadata.namespace}/leases/${metadata.name}`);
    }
    await watchHolders(world, seen, 3 * MINUTE_MS);
    expect([...seen]).toEqual([former.identity]);
    cell.world.changePool({ spec: { replicas: 4 } });
    await time.advance(1_000);
    former.terminate();
    await watchHolders(world, seen, 3 * MINUTE_MS);

    expect(holdersIn(world)).toEqual(new Set([next.identity]));
    expect([...seen].filter((holders) => holders.includes(' and '))).toEqual([]);
  },
);

test.each(sampledSeeds('another number of shards from the end of the former replicas on', [1, 2, 3, 4]))(
  'who starts with another number while all of the former number end at once takes no shard before these have ended (seed %i)',
  async (seed) => {
    const plan = { names: ['cell-1'], shards: SHARDS, managers: 1 };
    await using world = await MachinesWorld.create(withCells({ seed, flags: LEASES }, plan));
    const { time, processes } = world;
    const cell = await Cell.create(world, 'cell-1', SHARDS, { replicas: 2 });
    cell.setRight();
    const former = await processes.start();
    await time.advance(10 * MINUTE_MS);
    cell.world.changePool({ spec: { replicas: 4 } });
    await time.advance(1_000);

    former.terminate();
    const next = await processes.start({ flags: { 'cell-shards': '7' } });
    const seen = new Set<string>();
    await watchHolders(world, seen, 2 * MINUTE_MS);

    expect(holdersIn(world)).toEqual(new Set([next.identity]));
    expect([...seen].filter((holders) => holders.includes(' and '))).toEqual([]);
  },
);

test('while an upgrade to another number waits, a replica of the former one that comes back leaves no shard to nobody', async () => {
  const plan = { names: ['cell-1'], shards: SHARDS, managers: 1 };
  await using world = await MachinesWorld.create(withCells({ seed: 1, flags: LEASES }, plan));
  const { time, processes } = world;
  const cell = await Cell.create(world, 'cell-1', SHARDS, { replicas: 1 });
  cell.setRight();
  const [first, second] = [await processes.start(), await processes.start()];
  await time.advance(10 * MINUTE_MS);
  await processes.start({ flags: { 'cell-shards': '7' } });
  await time.advance(2 * MINUTE_MS);

  first.kill();
  await processes.start();
  await time.advance(10 * MINUTE_MS);

  expect(holdersIn(world)).toEqual(new Set([second.identity]));
});

/** Who holds shards. */
function holdersIn(world: MachinesWorld): ReadonlySet<string> {
  const shards = world.leases.filter(({ metadata }) => shardOfLease(metadata.name) !== undefined);
  return new Set(shards.map((lease) => holderOf(lease)).filter((holder) => holder !== ''));
}
