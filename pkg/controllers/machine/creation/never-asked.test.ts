import { describe, expect, test } from '@jest/globals';

import { MINUTE } from '../../../../test/durations.ts';
import { machineClass } from '../../../../test/builders.ts';
import type { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { newMachineWorld } from '../../../../test/fakes/new-machine-world.ts';
import { MACHINE_FINALIZER } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';

const KEY = 'default/m-1';

/** A new machine of a class whose provider has no driver. */
function start(provider = 'mars'): FakeWorld {
  return newMachineWorld({
    machineClass: (c) => {
      c.provider = provider;
      c.metadata.resourceVersion = '1';
    },
  });
}

function provide(world: FakeWorld, provider: string, resourceVersion: string): void {
  world.classes.put(
    machineClass((c) => {
      Object.assign(c.metadata, { finalizers: [MACHINE_FINALIZER], resourceVersion });
      c.provider = provider;
    }),
  );
}

const current = (world: FakeWorld): Machine | undefined => world.machines.get(KEY);

function beginDeletion(world: FakeWorld): void {
  const { metadata, ...rest } = current(world) as Machine;
  const deletionTimestamp = '2026-01-01T01:00:00Z';
  world.machines.put({ ...rest, metadata: { ...metadata, deletionTimestamp, resourceVersion: '9000' } });
}

/** Annotations are what they are now. */
function annotate(world: FakeWorld, annotations: Record<string, string>): void {
  const { metadata, ...rest } = current(world) as Machine;
  const resourceVersion = `${metadata.resourceVersion}0`;
  world.machines.put({ ...rest, metadata: { ...metadata, annotations, resourceVersion } });
}

/** Passes over the deletion of the machine, until nothing more happens; whether it is gone. */
async function isGoneAfterDeletion(world: FakeWorld): Promise<boolean> {
  beginDeletion(world);
  for (let i = 0; i < 8 && current(world) !== undefined; i++) {
    await world.reconcile();
    await world.settle();
  }
  return current(world) === undefined;
}

describe('a machine of a provider without driver', () => {
  test('that was made while this process decides goes without it, also after a restart', async () => {
    const world = start();

    await world.reconcile();
    expect(current(world)?.status?.lastOperation?.errorCode).toBe('NeverAsked');
    world.restart();
    world.trustedForMs = () => 0;
    await world.reconcile();
    expect(current(world)?.status?.lastOperation?.errorCode).toBe('NeverAsked');

    expect(await isGoneAfterDeletion(world)).toBe(true);
  });

  test('whose deletion waited for hooks goes without it all the same', async () => {
    const world = start();
    await world.reconcile();
    annotate(world, { 'pre-drain.hook.machine.sapcloud.io/backup': '' });

    expect(await isGoneAfterDeletion(world)).toBe(false);
    expect(current(world)?.status?.lastOperation?.description).toContain('Waiting for hooks');
    annotate(world, {});

    expect(await isGoneAfterDeletion(world)).toBe(true);
    expect(world.driver.calls).toEqual([]);
  });

  test('whose deletion waited for the end of an outage goes without it all the same', async () => {
    const world = start();
    await world.reconcile();
    world.outages = [{ cluster: 'target', sinceMs: 0, why: 'no answer' }];

    expect(await isGoneAfterDeletion(world)).toBe(false);
    expect(current(world)?.status?.lastOperation?.description).toContain('no answer');
    world.outages = [];

    expect(await isGoneAfterDeletion(world)).toBe(true);
  });

  test.each([
    { what: 'before that', trustedForMs: 0 },
    { what: 'as it began', trustedForMs: MINUTE },
  ])('that was made $what waits for the driver: another process may have asked it', async ({ trustedForMs }) => {
    const world = start();
    world.trustedForMs = () => trustedForMs;

    await world.reconcile();

    expect(current(world)?.status?.lastOperation?.errorCode).toBeUndefined();
    expect(await isGoneAfterDeletion(world)).toBe(false);
  });

  test('that was asked for once the driver came says so before, and waits for the driver when that is gone', async () => {
    const world = start();
    await world.reconcile();

    provide(world, 'sim', '2');
    await world.reconcile();
    await world.settle();
    expect(world.driver.calls).toEqual([]);
    expect(current(world)?.status?.lastOperation).toMatchObject({ type: 'Create', state: 'Processing' });
    await world.reconcile();
    await world.settle();
    expect(world.driver.calls).toEqual(['status', 'create']);

    // Nobody has recorded the VM yet when the manager is started without the driver.
    world.restart();
    provide(world, 'mars', '3');
    await world.reconcile();

    expect(await isGoneAfterDeletion(world)).toBe(false);
  });
});

describe('a machine that is deleted before anything is said of it', () => {
  function undecided(finalizers: readonly string[]): FakeWorld {
    return newMachineWorld({ machineClass: (c) => void (c.metadata.finalizers = [...finalizers]) });
  }

  test('goes without its class when that was never protected, and is deleted too', async () => {
    const world = undecided([]);
    world.drains.end({ kind: 'drained' });
    beginDeletion(world);
    await world.pass(world.deletion.slice(0, 1));
    expect(current(world)?.status?.lastOperation).toMatchObject({ type: 'Delete', errorCode: 'NeverAsked' });

    world.classes.remove('default/class-1');
    world.restart();
    for (let i = 0; i < 8 && current(world) !== undefined; i++) await world.reconcile();

    expect(current(world)).toBeUndefined();
    expect(world.driver.calls).toEqual([]);
  });

  test('waits for a class that was protected: another process may have asked, and been killed before it wrote', async () => {
    const world = undecided([MACHINE_FINALIZER]);
    world.drains.end({ kind: 'drained' });
    beginDeletion(world);
    await world.pass(world.deletion.slice(0, 1));

    world.classes.remove('default/class-1');
    for (let i = 0; i < 8; i++) await world.reconcile();

    expect(current(world)?.status?.lastOperation).toMatchObject({ state: 'Failed', type: 'Delete' });
    expect(current(world)?.status?.lastOperation?.errorCode).toBeUndefined();
  });

  test('has its VM looked for while the class is there, whatever was recorded', async () => {
    const world = undecided([]);
    world.drains.end({ kind: 'drained' });

    expect(await isGoneAfterDeletion(world)).toBe(true);
    expect(world.driver.calls).toEqual(['status', 'delete']);
  });
});

test('a machine without status that has a Node was asked for, although its class is not protected', async () => {
  const world = newMachineWorld({ machine: (m) => void (m.metadata.labels = { node: 'm-1' }) });
  world.classes.put(machineClass((c) => void Object.assign(c.metadata, { finalizers: [], resourceVersion: '2' })));
  beginDeletion(world);

  await world.reconcile();

  expect(current(world)?.status?.lastOperation?.errorCode).toBeUndefined();
});
