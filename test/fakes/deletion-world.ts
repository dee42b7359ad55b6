import { DriverError } from '../../pkg/driver/error.ts';
import { machine, machineClass, node, secret } from '../builders.ts';
import { FakeWorld, type PassSeen } from './machine-world.ts';
import type { LastOperation, Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { explain } from '../../pkg/controllers/machine/explain/explain.ts';

const FINALIZER = 'machine.sapcloud.io/machine-controller-manager';

/** A world with Machine m-1 whose deletion was asked for a moment ago, its class and its VM. It has no Node. */
export function worldInDeletion(change: (m: ReturnType<typeof machine>) => void = () => undefined): FakeWorld {
  const world = new FakeWorld();
  world.driver.notFound = () => new DriverError('NotFound', 'no VM');
  world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] });
  world.classes.put(machineClass((c) => Object.assign(c.metadata, { finalizers: [FINALIZER] })));
  world.secrets.put(secret());
  world.machines.put(
    machine((m) => {
      m.metadata.finalizers = [FINALIZER];
      m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      m.status.conditions = [{ type: 'Ready', status: 'True' }];
      change(m);
    }),
  );
  return world;
}

/** Passes until nothing moves, or Machine m-1 is gone. */
export async function runToEnd(world: FakeWorld): Promise<void> {
  for (let i = 0; i < 20 && world.machines.get('default/m-1') !== undefined; i++) {
    await world.reconcile();
    await world.settle();
  }
}

export const KEY = 'default/m-1';

export type Change = (m: ReturnType<typeof machine>) => void;

/** A Machine whose deletion was asked for a moment ago, its VM and its Node. */
export function startDeletion(change: Change = () => undefined): FakeWorld {
  const world = worldInDeletion(change);
  world.nodes.cache.put(node());
  return world;
}

/** One that nobody has deleted, and that has no VM yet. */
export function startCreation(): FakeWorld {
  const world = startDeletion((m) => {
    m.metadata.labels = {};
    delete (m.metadata as { deletionTimestamp?: string }).deletionTimestamp;
    m.spec = { class: { kind: 'MachineClass', name: 'class-1' } };
    m.status = {} as (typeof m)['status'];
  });
  world.nodes.cache.remove('m-1');
  world.driver.vms.clear();
  return world;
}

export const STAGE_OF_VM = 'Drain successful. Initiate VM deletion';

export function editMachine(world: FakeWorld, change: Change): void {
  world.machines.put(
    machine((m) => {
      Object.assign(m, structuredCopy(world.machines.get(KEY) as Machine));
      m.metadata.resourceVersion = `${m.metadata.resourceVersion}0`;
      change(m);
    }),
  );
}

const structuredCopy = (m: Machine): Machine => JSON.parse(JSON.stringify(m)) as Machine;

export const operationOf = (world: FakeWorld): LastOperation | undefined =>
  world.machines.get(KEY)?.status?.lastOperation;

export const descriptionOf = (world: FakeWorld): string | undefined => operationOf(world)?.description;

export const reasonShown = (world: FakeWorld): string =>
  explain(world.machines.get(KEY) as Machine, world.clock.now()).reason;

export const stageNow = (world: FakeWorld): string => descriptionOf(world) ?? '(gone)';

export function makeNotReady(world: FakeWorld): void {
  world.nodes.cache.put(
    node((n) => {
      n.metadata.resourceVersion = '2';
      n.status.conditions = [{ type: 'Ready', status: 'Unknown' }];
    }),
  );
}

/** Passes until nothing moves without an event from outside. */
export async function runUntilQuiet(world: FakeWorld): Promise<PassSeen> {
  let seen = await world.reconcile();
  for (let quiet = 0; quiet < 3 && world.machines.get(KEY) !== undefined; quiet++) {
    await world.settle();
    const before = world.machines.get(KEY);
    const calls = world.driver.calls.length + world.drains.requests.length;
    seen = await world.reconcile();
    await world.settle();
    const hasMoved = world.driver.calls.length + world.drains.requests.length !== calls;
    if (hasMoved || world.machines.get(KEY) !== before) quiet = -1;
  }
  return seen;
}
