import { expect, jest, test } from '@jest/globals';

import type { Event } from '../../../../pkg/apis/wire.ts';
import { MachinesWorld } from '../../world/machines-world.ts';
import { Cell } from './cell.ts';
import { withCells } from './cells-world.ts';

// Seconds of the processor, which a busy host takes long to give: a life is bounded by its own time.
jest.setTimeout(300_000);

const NAMES = ['cell-1', 'cell-2'];
const SHARDS = 2;
const SECOND_MS = 1_000;

test('a named cell that is refused what nobody could ask about stays refused while it is tried again, until it has begun', async () => {
  const plan = { names: NAMES, shards: SHARDS, managers: 1, areNamed: true };
  await using world = await MachinesWorld.create(withCells({ seed: 1, flags: {} }, plan));
  const { time, processes } = world;
  const [well, without] = [
    await Cell.create(world, 'cell-1', SHARDS, { replicas: 1 }),
    await Cell.create(world, 'cell-2', SHARDS, { replicas: 1 }),
  ];
  for (const cell of [well, without]) cell.setRight();
  const lists = forbid(world, /\/namespaces\/cell-2\/machinesets(\?|$)/);
  const { cells } = await processes.start();
  const until = async (isSo: () => boolean): Promise<void> => {
    for (let i = 0; i < 600 && !isSo(); i++) await time.advance(SECOND_MS);
    expect(isSo()).toBe(true);
  };
  await until(() => cells?.refused.has('cell-2') ?? false);
  const why = cells?.refused.get('cell-2');
  expect(why).toMatch(/machinesets.*deploy\/rbac\/cell\.yaml/);

  const seen = new Set<string | undefined>();
  const triedAt = lists.count;
  await until(() => {
    seen.add(cells?.running.has('cell-2') ? 'running' : cells?.refused.get('cell-2'));
    return lists.count > triedAt + 20;
  });
  await time.advance(SECOND_MS);

  expect([...seen]).toEqual([why]);
  expect(refusals(world).map(({ count }) => count)).toEqual([1]);
  expect(well.isAsAsked).toBe(true);

  lists.isForbidden = false;
  await until(() => cells?.running.has('cell-2') ?? false);
  expect(cells?.refused).toEqual(new Map());
  await until(() => without.isAsAsked);
});

/** Requests for these paths are rejected, and counted, while that is so. */
function forbid({ weather }: MachinesWorld, paths: RegExp): { isForbidden: boolean; count: number } {
  const lists = { isForbidden: true, count: 0 };
  const faultOf = weather.faultOf.bind(weather);
  weather.faultOf = (request) => {
    if (!paths.test(request.path) || !lists.isForbidden) return faultOf(request);
    lists.count += 1;
    return 'refused-403';
  };
  return lists;
}

function refusals({ servers }: MachinesWorld): readonly Event[] {
  const path = '/api/v1/namespaces/cell-2/events';
  const answer = servers.control.handle({ method: 'GET', path });
  const { items } = ('body' in answer ? answer.body : { items: [] }) as { items: readonly Event[] };
  return items.filter(({ reason }) => reason === 'MissingPermissions');
}
