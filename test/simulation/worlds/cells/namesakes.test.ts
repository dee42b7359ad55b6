import { describe, expect, jest, test } from '@jest/globals';

import type { ListedMachine } from '../../../../pkg/driver/driver.ts';
import { MACHINE_FINALIZER, MACHINE_NAME_LABEL } from '../../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../../pkg/apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../../pkg/apis/wire.ts';
import { noteOfForcedRemoval } from '../../../../pkg/controllers/vms/forced-removals.ts';
import { MachinesWorld, POOL } from '../../world/machines-world.ts';
import { Cell } from './cell.ts';
import { Cells, withCells } from './cells-world.ts';

// Seconds of the processor, which a busy host takes long to give: a life is bounded by its own time.
jest.setTimeout(300_000);

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const SHARDS = 2;
const NAMES = ['cell-1', 'cell-2'];
const TWIN = 'twin';

/** Two cells with one target cluster, without machines; the second may be a namespace that is not managed. */
async function start(isSelected = true) {
  const plan = { names: NAMES, shards: SHARDS, managers: 1, shareTarget: true };
  const world = await MachinesWorld.create(withCells({ seed: 1, flags: {} }, plan));
  const [one, other] = [
    await Cell.create(world, 'cell-1', SHARDS, { replicas: 0 }),
    await Cell.create(world, 'cell-2', SHARDS, { replicas: 0 }),
  ];
  other.isWanted = isSelected;
  for (const cell of [one, other]) cell.setRight();
  while (world.processes.lacksOne) await world.processes.start();
  const population = new Cells(world, [one, other], () => 1);
  return {
    world,
    one,
    other,
    findings: () => population.ledger.findings,
    twinOf: (cell: Cell): Machine | undefined => cell.world.machines.find(({ metadata }) => metadata.name === TWIN),
    node: (): Node | undefined => one.world.nodes.find(({ metadata }) => metadata.name === TWIN),
    until: async (isSo: () => boolean): Promise<void> => {
      for (let i = 0; i < 3_600 && !isSo(); i++) await world.time.advance(SECOND_MS);
      expect(isSo()).toBe(true);
    },
    remove: (cell: Cell): void => {
      cell.pool.ledger.askedFor(TWIN);
      world.act('DELETE', cell.world.pathOf('machines', TWIN), {});
    },
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}

type Scene = Awaited<ReturnType<typeof start>>;

/** The machine of the first cell runs, and the second has a copy of it, with all that is recorded. */
async function withCopy({ world, one, other, until, twinOf }: Scene, createdAfterMs: number): Promise<void> {
  one.createLone(TWIN);
  await until(() => one.world.cloud.size > 0);
  await world.time.advance(createdAfterMs);
  other.createLone(TWIN);
  await until(() => twinOf(one)?.status?.currentStatus?.phase === 'Running');
  const { metadata, spec, status } = twinOf(one) as Machine;
  const { labels, annotations, finalizers } = metadata;
  const path = other.world.pathOf('machines', TWIN);
  world.act('PATCH', path, { metadata: { labels, annotations, finalizers }, spec });
  world.act('PATCH', `${path}/status`, { status });
  await world.time.advance(MINUTE_MS);
}

describe.each([{ isSelected: true }, { isSelected: false }])(
  'of a machine with a copy in another namespace (managed: $isSelected)',
  ({ isSelected }) => {
    test('VM and Node are deleted with the machine, if it is more than a minute older', async () => {
      await using scene = await start(isSelected);
      const { one, other, until, twinOf, node } = scene;
      await withCopy(scene, 2 * MINUTE_MS);
      expect(node()).toBeDefined();

      scene.remove(one);
      await until(() => twinOf(one) === undefined);

      expect(one.world.cloud.size).toBe(0);
      expect(node()).toBeUndefined();
      expect(twinOf(other)).toBeDefined();
      expect(scene.findings()).toEqual([]);
    });

    test('both stay for the copy, if that was created within a minute', async () => {
      await using scene = await start(isSelected);
      const { world, one, until, twinOf, node } = scene;
      await withCopy(scene, 0);
      const before = node()?.metadata;

      scene.remove(one);
      await until(() => twinOf(one) === undefined);
      await world.time.advance(MINUTE_MS);

      expect(one.world.cloud.size).toBe(1);
      expect(node()?.metadata.uid).toBe(before?.uid);
      expect(node()?.metadata.deletionTimestamp).toBeUndefined();
      expect(scene.findings()).toEqual([]);
    });
  },
);

test.each([{ createdAfterMs: 0 }, { createdAfterMs: 2 * MINUTE_MS }])(
  'a copy that was created $createdAfterMs ms later is deleted, and the VM and the Node stay',
  async ({ createdAfterMs }) => {
    await using scene = await start();
    const { one, other, until, twinOf, node } = scene;
    await withCopy(scene, createdAfterMs);
    const before = node()?.metadata;

    scene.remove(other);
    await until(() => twinOf(other) === undefined);

    expect(one.world.cloud.size).toBe(1);
    expect(node()?.metadata.uid).toBe(before?.uid);
    expect(twinOf(one)?.status?.currentStatus?.phase).toBe('Running');
    expect(scene.findings()).toEqual([]);
  },
);

test('a cell whose driver lists VMs by the name of the class alone leaves those of a cell that does not run alone, and collects others', async () => {
  await using scene = await start();
  const { world, one, other, until } = scene;
  one.isWanted = false;
  one.select(false);
  await world.time.advance(MINUTE_MS);
  // Nobody has recorded the VM yet.
  one.createLone(TWIN);
  const plant = (machineName: string) =>
    one.world.cloud.plant({ machineName, namespace: one.namespace, className: POOL, zone: one.namespace });
  const vm = plant(TWIN);
  const orphan = plant('nobody');
  const { driver } = other.world.simulation;
  const removed: string[] = [];
  Object.assign(driver, {
    listMachines: (): Promise<readonly ListedMachine[]> =>
      Promise.resolve(
        one.world.cloud
          .all()
          .map(({ providerID, machineName }) => ({ providerID, machineName, machineUID: undefined })),
      ),
    deleteMachine: ({ machine: { spec } }: Parameters<typeof driver.deleteMachine>[0]) => {
      removed.push(spec?.providerID ?? '');
      one.world.cloud.remove(spec?.providerID ?? '', 'deleted');
      return Promise.resolve({ lastKnownState: undefined });
    },
  });

  await until(() => removed.length > 0);
  await world.time.advance(20 * MINUTE_MS);

  expect(removed).toEqual([orphan.providerID]);
  expect(one.world.cloud.get(vm.providerID)).toBeDefined();
});

test('the VM of a machine whose Node shows no provider ID, and may be that of a namesake, waits until it does', async () => {
  await using scene = await start(false);
  const { world, one, other, until, twinOf, node } = scene;
  one.isWanted = false;
  one.select(false);
  await world.time.advance(MINUTE_MS);
  for (const cell of [one, other]) cell.createLone(TWIN);
  const { uid: machineUID } = twinOf(one)?.metadata ?? {};
  const whose = { namespace: one.namespace, className: POOL, zone: one.namespace };
  const { providerID } = one.world.cloud.plant({ machineName: TWIN, ...whose, ...(machineUID && { machineUID }) });
  const conditions = [{ type: 'Ready', status: 'True' }];
  const path = one.world.pathOf('machines', TWIN);
  world.act('PATCH', path, { metadata: { labels: { node: TWIN } }, spec: { providerID } });
  world.act('PATCH', `${path}/status`, { status: { currentStatus: { phase: 'Running' }, conditions } });
  world.act('PATCH', other.world.pathOf('machines', TWIN), { spec: { providerID: 'sim:///elsewhere/i-7' } });
  const metadata = { name: TWIN, labels: { [MACHINE_NAME_LABEL]: TWIN } };
  world.act('POST', '/api/v1/nodes', { metadata, spec: {}, status: { conditions } }, 'target');
  one.isWanted = true;
  one.select(true);
  await until(() => twinOf(one)?.metadata.finalizers?.includes(MACHINE_FINALIZER) === true);

  scene.remove(one);
  // Its drain timeout is longer.
  await world.time.advance(2 * MINUTE_MS);

  expect(twinOf(one)?.status?.lastOperation).toMatchObject({
    state: 'Failed',
    description: expect.stringContaining(`Node ${TWIN} may be that of a Machine of the same name in another namespace`),
  });
  expect(one.world.cloud.size).toBe(1);

  world.act('PATCH', `/api/v1/nodes/${TWIN}`, { spec: { providerID } }, 'target');
  await until(() => twinOf(one) === undefined);
  expect(one.world.cloud.size).toBe(0);
  expect(node()).toBeUndefined();
  expect(scene.findings()).toEqual([]);
});

test('two machines that have recorded no VM, and are both being deleted, do not wait for each other for ever', async () => {
  await using scene = await start(false);
  const { world, one, other, until, twinOf } = scene;
  one.isWanted = false;
  one.select(false);
  await world.time.advance(MINUTE_MS);
  for (const cell of [one, other]) {
    cell.createLone(TWIN);
    const path = cell.world.pathOf('machines', TWIN);
    const lastOperation = { type: 'Create', state: 'Processing', description: 'Creating machine on cloud provider' };
    world.act('PATCH', path, { metadata: { finalizers: [MACHINE_FINALIZER] } });
    world.act('PATCH', `${path}/status`, { status: { lastOperation } });
    cell.world.cloud.plant({
      machineName: TWIN,
      machineUID: twinOf(cell)!.metadata.uid,
      namespace: cell.namespace,
      className: POOL,
      zone: cell.namespace,
    });
    scene.remove(cell);
  }

  for (const cell of [one, other]) {
    cell.isWanted = true;
    cell.select(true);
  }
  await until(() => twinOf(one) === undefined && twinOf(other) === undefined);

  expect([one.world.cloud.size, other.world.cloud.size]).toEqual([0, 0]);
  expect(scene.findings()).toEqual([]);
});

test('what a forced removal has left in one cell is not deleted by name while a machine in another namespace has that name', async () => {
  await using scene = await start(false);
  const { world, one, other, until, twinOf } = scene;
  other.createLone(TWIN);
  const left = { ...twinOf(other)!, metadata: { ...twinOf(other)!.metadata, name: TWIN, uid: 'removed-by-force' } };
  const asked: string[] = [];
  const { driver } = one.world.simulation;
  const deleteMachine = driver.deleteMachine.bind(driver);
  driver.deleteMachine = async (request, call) => {
    asked.push(request.machine.metadata.name);
    return await deleteMachine(request, call);
  };
  world.act('PATCH', one.world.pathOf('machineclasses', POOL), {
    metadata: { annotations: noteOfForcedRemoval(left) },
  });

  await world.time.advance(40 * MINUTE_MS);
  expect(asked).toEqual([]);

  world.act('DELETE', other.world.pathOf('machines', TWIN), {});
  await until(() => asked.includes(TWIN));
});

test.each([
  ['label node of', { metadata: { labels: { node: TWIN } } }],
  ['the provider ID of', { spec: { providerID: 'sim:///cell-2/i-1' } }],
])('requests for a Node that joins early concern its cell when %s its Machine tells that', async (_what, told) => {
  await using scene = await start(false);
  const { world, one, other } = scene;
  other.createLone(TWIN);
  const path = `/api/v1/nodes/${TWIN}`;
  const node = { metadata: { name: TWIN }, spec: { providerID: 'sim:///cell-2/i-1' } };
  world.act('POST', '/api/v1/nodes', node, 'target');
  const asked = { identity: '', to: 'target', method: 'PATCH', path, sentAtMs: 0 };
  const concerned = (): readonly boolean[] => [one, other].map((cell) => cell.world.concerns(asked));
  // It is being created, and nobody has recorded its VM.
  expect(concerned()).toEqual([false, false]);

  world.act('PATCH', other.world.pathOf('machines', TWIN), told);
  expect(concerned()).toEqual([false, true]);
});
