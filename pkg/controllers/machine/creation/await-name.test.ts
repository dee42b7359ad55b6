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

/** Deletes the Machine, and resolves with what was told meanwhile. */
async function deleteIt(world: FakeWorld): Promise<readonly string[]> {
  const { metadata, ...rest } = world.machines.get(KEY) as Machine;
  const deletionTimestamp = '2026-01-01T01:00:00Z';
  world.machines.put({ ...rest, metadata: { ...metadata, deletionTimestamp, resourceVersion: '9000' } });
  const told: string[] = [];
  for (let i = 0; i < 8 && world.machines.get(KEY) !== undefined; i++) {
    const { events } = await world.reconcile();
    told.push(...events.map(({ message }) => message));
    await world.settle();
  }
  return told;
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

    await deleteIt(world);

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

  test('has begun, for all who look, before its driver hears of it', async () => {
    const world = start();

    await world.reconcile();
    expect(operationOf(world)).toMatchObject({
      state: 'Processing',
      description: 'Creating machine on cloud provider',
    });
    expect(world.driver.calls).toEqual([]);

    // A process that is started now finds a younger namesake, and goes on.
    world.others.push(namesake((m) => void (m.spec = {})));
    world.restart();
    await world.reconcile();
    await world.settle();
    await world.reconcile();

    expect(world.machines.get(KEY)?.spec.providerID).not.toBe('');
  });

  test('of which it is not certain that no VM was requested leaves the VM of the other one alone, whose name is all that the driver knows', async () => {
    const world = start(namesake((m) => void (m.spec = { providerID: 'sim:///m-1' })));
    world.trustedForMs = () => 0;
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] });
    await world.reconcile();

    const events = await deleteIt(world);

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.driver.calls).not.toContain('delete');
    expect([...world.driver.vms.keys()]).toEqual(['m-1']);
    expect(events).toContain('No VM was deleted: the VM of name m-1 is that of a Machine in another namespace.');
  });

  test('waits with its deletion while the other one has not recorded the VM that may be its', async () => {
    const begun = namesake((m) => {
      m.metadata.labels = {};
      m.spec = {};
      m.metadata.annotations = { [CREATION_SENT_ANNOTATION]: '2026-01-01T00:00:00Z' };
    });
    const world = start(begun);
    world.trustedForMs = () => 0;
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] });
    await world.reconcile();

    await deleteIt(world);

    expect(world.driver.calls).not.toContain('delete');
    expect(world.machines.get(KEY)?.status?.lastOperation?.description).toMatch(
      /may be that of a Machine of the same name/,
    );
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
