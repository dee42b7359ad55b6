import { describe, expect, test } from '@jest/globals';

import { machine } from '../../../../test/builders.ts';
import { newMachineWorld } from '../../../../test/fakes/new-machine-world.ts';
import type { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { CREATION_SENT_ANNOTATION, NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';

const KEY = 'default/m-1';

/** A Machine of the same name elsewhere, which runs. */
function namesake(change: (m: ReturnType<typeof machine>) => void = () => undefined): Machine {
  return machine((m) => {
    Object.assign(m.metadata, { namespace: 'other', uid: 'other-m-1', labels: { [NODE_LABEL]: 'm-1' } });
    m.spec = { providerID: 'sim:///theirs' };
    change(m);
  });
}

/** A new machine among namespaces that have a target in common. */
function start(...others: Machine[]): FakeWorld & { others: Machine[] } {
  const world = newMachineWorld();
  const found = [...others];
  world.namesakes = () => Promise.resolve([world.machines.get(KEY) as Machine, ...found]);
  world.restart();
  return Object.assign(world, { others: found });
}

const operationOf = (world: FakeWorld): unknown => world.machines.get(KEY)?.status?.lastOperation;

describe('a machine whose name another namespace has', () => {
  test('waits, says so once, and shows nothing that tells of a Node', async () => {
    const world = start(namesake());

    const { result, events } = await world.reconcile();
    const again = await world.reconcile();
    await world.settle();

    expect(result).toMatchObject({ kind: 'requeue', afterMs: 60_000 });
    expect(operationOf(world)).toMatchObject({
      type: 'Create',
      errorCode: 'NameTaken',
      description: expect.stringContaining('a Machine in another namespace, which has it already') as unknown as string,
    });
    expect(world.machines.get(KEY)?.status?.conditions ?? []).toEqual([]);
    expect(events.map(({ reason }) => reason)).toEqual(['NameTaken']);
    expect(again.events).toEqual([]);
    expect(again.writes).toEqual([]);
    expect(world.driver.calls).toEqual([]);
  });

  test('is created when the other one is gone', async () => {
    const world = start(namesake());
    await world.reconcile();

    world.others.pop();
    await world.reconcile();
    await world.reconcile();
    await world.settle();
    await world.reconcile();

    expect(world.machines.get(KEY)?.spec.providerID).not.toBe('');
    expect(world.machines.get(KEY)?.status?.lastOperation).not.toMatchObject({ errorCode: 'NameTaken' });
  });

  test('goes without a word to its driver', async () => {
    const world = start(namesake());
    await world.reconcile();
    const { metadata, ...rest } = world.machines.get(KEY) as Machine;
    const deletionTimestamp = '2026-01-01T01:00:00Z';
    world.machines.put({ ...rest, metadata: { ...metadata, deletionTimestamp, resourceVersion: '9000' } });

    for (let i = 0; i < 8 && world.machines.get(KEY) !== undefined; i++) {
      await world.reconcile();
      await world.settle();
    }

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.driver.calls).toEqual([]);
  });

  test('may have begun before this process, and then its driver is asked when it goes', async () => {
    const world = start(namesake());
    world.trustedForMs = () => 0;

    await world.reconcile();

    expect(operationOf(world)).toMatchObject({ state: 'Processing', errorCode: 'NameTaken' });
    world.others.pop();
    await world.reconcile();
    expect(operationOf(world)).toMatchObject({
      state: 'Processing',
      description: 'Creating machine on cloud provider',
    });
  });

  test('goes on once it has begun', async () => {
    const world = start();
    await world.reconcile();
    await world.settle();
    world.others.push(namesake());

    await world.reconcile();

    expect(world.machines.get(KEY)?.spec.providerID).not.toBe('');
  });

  test('goes on where a former process has begun, and the answer is missing', async () => {
    const world = start(namesake());
    world.annotate(world.machines.get(KEY) as Machine, { [CREATION_SENT_ANNOTATION]: '2026-01-01T00:00:00Z' });
    world.restart();

    const { events } = await world.reconcile();
    await world.settle();

    expect(events.map(({ reason }) => reason)).not.toContain('NameTaken');
    expect(world.driver.calls).not.toEqual([]);
  });

  test('waits for nobody where each namespace has its own target', async () => {
    const world = start(namesake());
    world.namesakes = undefined;
    world.restart();

    await world.reconcile();
    await world.settle();
    await world.reconcile();

    expect(world.machines.get(KEY)?.spec.providerID).not.toBe('');
  });
});
