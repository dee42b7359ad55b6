import { expect, jest, test } from '@jest/globals';

import { holderOf } from '../../../../pkg/kube/leader/lease.ts';
import type { Backup } from '../../api-server/objects.ts';
import type { StoredObject } from '../../api-server/stored-object.ts';
import { MachinesWorld } from '../../world/machines-world.ts';
import { Cell } from './cell.ts';
import { Cells, withCells } from './cells-world.ts';

// Seconds of the processor, which a busy host takes long to give: a life is bounded by its own time.
jest.setTimeout(300_000);

const MINUTE_MS = 60_000;
const NAMES = ['cell-1', 'cell-2'];
const SHARDS = 2;

test.each([1, 2, 3, 4])(
  'a restore of the control cluster that has forgotten who has which target cluster takes none from its namespace (seed %i)',
  async (seed) => {
    await using world = await MachinesWorld.create(
      withCells({ seed, flags: {} }, { names: NAMES, shards: SHARDS, managers: 1 }),
    );
    const { time, processes } = world;
    const { objects } = world.servers.control;
    const [owner, other] = [
      await Cell.create(world, 'cell-1', SHARDS, { replicas: 2 }),
      await Cell.create(world, 'cell-2', SHARDS, { replicas: 0 }),
    ];
    owner.setRight();
    while (processes.lacksOne) await processes.start();
    const population = new Cells(world, [owner, other], () => 1);
    const until = async (isSo: () => boolean): Promise<void> => {
      for (let i = 0; i < 60 && !isSo(); i++) await time.advance(MINUTE_MS / 2);
      expect(isSo()).toBe(true);
    };
    const claims = (): readonly string[] =>
      world.leases
        .filter(({ metadata }) => metadata.name.startsWith('machinist-target-'))
        .map((lease) => holderOf(lease));
    await until(() => owner.isAsAsked);
    // Waits for the target cluster of the other one.
    other.setRight();
    other.lead('cell-1');
    await time.advance(2 * MINUTE_MS);
    const backup = withoutClaims(objects.backup());
    await time.advance(MINUTE_MS);

    world.restore(backup);
    await until(() => claims().length > 0);
    await time.advance(10 * MINUTE_MS);

    expect(claims()).toEqual(['cell-1']);
    population.ledger.look();
    expect(population.ledger.findings).toEqual([]);
    expect(owner.isAsAsked).toBe(true);
  },
);

/** The same, made before anybody had a target cluster. */
function withoutClaims({ rv, objects }: Backup): Backup {
  const isClaim = ({ metadata }: StoredObject): boolean => metadata.name.startsWith('machinist-target-');
  const left = [...objects].map(
    ([kind, all]) => [kind, new Map([...all].filter(([, object]) => !isClaim(object)))] as const,
  );
  return { rv, objects: new Map(left) };
}
