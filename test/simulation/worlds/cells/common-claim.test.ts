import { expect, jest, test } from '@jest/globals';

import type { Event } from '../../../../pkg/apis/wire.ts';
import { membersIn } from '../../../../pkg/operator/cells/claim-leases.ts';
import { holderOf } from '../../../../pkg/kube/leader/lease.ts';
import { MachinesWorld, NAMESPACE } from '../../world/machines-world.ts';
import { Cell } from './cell.ts';
import { Cells, withCells } from './cells-world.ts';

// Seconds of the processor, which a busy host takes long to give: a life is bounded by its own time.
jest.setTimeout(300_000);

const MINUTE_MS = 60_000;
const NAMES = ['cell-1', 'cell-2'];
const SHARDS = 2;
const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;

/** Two cells with machines in one target cluster. */
async function start() {
  const plan = { names: NAMES, shards: SHARDS, managers: 1, shareTarget: true };
  const world = await MachinesWorld.create(withCells({ seed: 1, flags: {} }, plan));
  const cells: Cell[] = [];
  for (const name of NAMES) cells.push(await Cell.create(world, name, SHARDS, { replicas: 2 }));
  for (const cell of cells) cell.setRight();
  while (world.processes.lacksOne) await world.processes.start();
  const population = new Cells(world, cells, () => 1);
  for (let i = 0; i < 60 && !population.isAsAsked(); i++) await world.time.advance(MINUTE_MS / 2);
  expect(population.isAsAsked()).toBe(true);
  const claims = () => world.leases.filter(({ metadata }) => metadata.name.startsWith('machinist-target-'));
  return {
    world,
    population,
    claims,
    cells,
    vmsMade: () => cells.reduce((sum, { pool }) => sum + pool.ledger.vmsMade, 0),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}

test('the Lease of the target cluster of all cells that somebody deletes is there again soon', async () => {
  await using scene = await start();
  const { world, population, claims } = scene;
  const [{ metadata } = { metadata: { name: '' } }] = claims();

  world.act('DELETE', `${LEASES}/${metadata.name}`, {});
  expect(claims()).toEqual([]);
  await world.time.advance(3 * MINUTE_MS);

  expect(claims().map((lease) => [lease.metadata.name, holderOf(lease)])).toEqual([[metadata.name, '*']]);
  expect(population.isAsAsked()).toBe(true);
  expect(population.ledger.findings).toEqual([]);
});

test('cells do nothing any more when another target cluster was claimed for all of them by hand, and go on afterwards', async () => {
  await using scene = await start();
  const { world, population, claims } = scene;
  const [ours] = claims();
  const other = { name: 'machinist-target-other', labels: ours?.metadata.labels };

  world.act('POST', LEASES, { metadata: other, spec: { holderIdentity: '*' } });
  await world.time.advance(3 * MINUTE_MS);
  const made = scene.vmsMade();
  for (const { world: cell } of scene.cells) cell.changePool({ spec: { replicas: 3 } });
  await world.time.advance(5 * MINUTE_MS);
  expect(scene.vmsMade()).toBe(made);

  world.act('DELETE', `${LEASES}/${other.name}`, {});
  for (let i = 0; i < 60 && !population.isAsAsked(); i++) await world.time.advance(MINUTE_MS / 2);
  expect(population.isAsAsked()).toBe(true);
  expect(scene.vmsMade()).toBe(made + 2);
});

test('a cell that was not managed while its Nodes went does nothing when it is managed again, says so, and goes on when its users say that its Machines may be replaced', async () => {
  await using scene = await start();
  const { world, population, claims } = scene;
  const cell = scene.cells[0]!;
  const isMember = () => claims().some(({ metadata }) => membersIn(metadata).includes(cell.namespace));
  cell.select(false);
  for (let i = 0; i < 60 && isMember(); i++) await world.time.advance(MINUTE_MS / 2);
  expect(isMember()).toBe(false);
  for (const { providerID } of cell.world.cloud.all()) cell.world.cloud.remove(providerID, 'vanished');
  for (const { metadata } of cell.world.nodes) {
    const path = `/api/v1/nodes/${metadata.name}`;
    world.act('PATCH', path, { metadata: { finalizers: null } }, 'target');
    world.act('DELETE', path, {}, 'target');
  }
  expect(cell.world.nodes).toEqual([]);

  cell.select(true);
  await world.time.advance(20 * MINUTE_MS);
  expect(cell.world.cloud.size).toBe(0);
  const why = /None of the Nodes that its Machines have, or had, is in the cluster/;
  expect(world.processes.running.map(({ cells }) => cells?.taken.get(cell.namespace))).toEqual([
    expect.stringMatching(why),
  ]);
  const answer = world.servers.control.handle({ method: 'GET', path: `/api/v1/namespaces/${cell.namespace}/events` });
  const { items } = ('body' in answer ? answer.body : { items: [] }) as { items: readonly Event[] };
  const told = items.filter(({ reason }) => reason === 'TargetClusterChanged');
  expect(told.map(({ message }) => message)).toEqual([expect.stringMatching(why)]);

  cell.setRight();
  for (let i = 0; i < 60 && !population.isAsAsked(); i++) await world.time.advance(MINUTE_MS);
  expect(population.isAsAsked()).toBe(true);
  expect(population.ledger.findings).toEqual([]);
});
