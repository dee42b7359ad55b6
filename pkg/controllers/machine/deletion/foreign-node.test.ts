import { describe, expect, test } from '@jest/globals';

import { machine, node } from '../../../../test/builders.ts';
import { HOUR } from '../../../../test/durations.ts';
import { runToEnd, worldInDeletion } from '../../../../test/fakes/deletion-world.ts';
import type { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { FORCE_DELETION_LABEL, MACHINE_NAME_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { LastOperation } from '../../../apis/machine/v1alpha1/machine.ts';

const KEY = 'default/m-1';

type Change = (m: ReturnType<typeof machine>) => void;

/** A machine that is being deleted, with VM `sim:///m-1`, beside one of its name in another namespace; the Node of that name shows this ID. */
function start(providerID: string, namesakeID: string | undefined, change: Change = () => undefined): FakeWorld {
  const world = worldInDeletion(change);
  const namesake = machine((m) => {
    Object.assign(m.metadata, { namespace: 'other', uid: 'other-m-1' });
    m.spec.providerID = namesakeID ?? '';
  });
  if (namesakeID !== undefined) world.machines.put(namesake);
  world.namesakes = () => Promise.resolve(namesakeID === undefined ? [] : [namesake]);
  world.nodes.cache.put(
    node((n) => {
      n.metadata.labels = { [MACHINE_NAME_LABEL]: 'm-1' };
      n.spec = providerID === '' ? {} : { providerID };
    }),
  );
  world.restart();
  return world;
}

const operationOf = (world: FakeWorld): LastOperation | undefined => world.machines.get(KEY)?.status?.lastOperation;
const WHY =
  'Node m-1 may be that of a Machine of the same name in another namespace, because it does not show the provider ID of either. Waiting until it does, the other Machine is deleted, or the drain timeout expires; label force-deletion=True deletes the VM without a drain at once.';

describe('the Node of a deleted machine, of which nobody can say that it is not of its namesake,', () => {
  test.each([
    { what: 'no provider ID', shown: '' },
    { what: 'one of another form', shown: 'k3s://m-1-of-somebody' },
  ])('shows $what: the VM waits, and says for what', async ({ shown }) => {
    const world = start(shown, 'sim:///other');

    await runToEnd(world);

    expect(world.driver.calls).not.toContain('delete');
    expect(operationOf(world)).toMatchObject({ state: 'Failed', description: `${WHY} Initiate node drain` });
    expect(world.events.filter(({ message }) => message === WHY).map(({ reason }) => reason)).toEqual(['DrainFailed']);
  });

  test('is drained once it shows the VM', async () => {
    const world = start('', 'sim:///other');
    await runToEnd(world);

    world.nodes.cache.put(
      node((n) => {
        n.metadata.resourceVersion = '2';
        n.metadata.labels = { [MACHINE_NAME_LABEL]: 'm-1' };
      }),
    );
    await runToEnd(world);

    expect(world.drains.requests.map(({ nodeName }) => nodeName)).toEqual(['m-1']);
    expect(world.driver.calls).not.toContain('delete');
  });

  test('is drained once the namesake is gone', async () => {
    const world = start('', 'sim:///other');
    await runToEnd(world);

    world.machines.remove('other/m-1');
    await runToEnd(world);

    expect(world.drains.requests.map(({ nodeName }) => nodeName)).toEqual(['m-1']);
  });

  test.each<{ when: string; change?: Change; lateMs?: number }>([
    { when: 'the deletion is forced', change: (m) => void (m.metadata.labels[FORCE_DELETION_LABEL] = 'True') },
    { when: 'the drain timeout is over', lateMs: 3 * HOUR },
  ])('stays, and the VM is deleted, when $when', async ({ change, lateMs = 0 }) => {
    const world = start('', 'sim:///other', change);
    await runToEnd(world);

    world.clock.advance(lateMs);
    await runToEnd(world);

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.driver.calls).toContain('delete');
    expect(world.drains.requests).toEqual([]);
    expect(world.nodes.done.filter((what) => what.startsWith('remove'))).toEqual([]);
  });
});

test.each([
  { what: 'that shows the VM of the namesake', shown: 'sim:///other', namesakeID: 'sim:///other', shared: true },
  { what: 'that shows a third VM', shown: 'sim:///third', namesakeID: 'sim:///other', shared: true },
  { what: 'that shows the VM of both', shown: 'sim:///m-1', namesakeID: 'sim:///m-1', shared: true },
  { what: 'of another VM in a cluster of its own', shown: 'sim:///other', namesakeID: undefined, shared: false },
])('a Node $what is not waited for, and stays', async ({ shown, namesakeID, shared }) => {
  const world = start(shown, namesakeID);
  if (!shared) {
    world.namesakes = undefined;
    world.nodes.cache.put(
      node((n) => {
        n.metadata.resourceVersion = '8';
        n.spec = { providerID: shown };
      }),
    );
    world.restart();
  }
  const told: (string | undefined)[] = [];
  for (let i = 0; i < 20 && world.machines.get(KEY) !== undefined; i++) {
    await world.reconcile();
    await world.settle();
    told.push(operationOf(world)?.description);
  }

  expect(world.machines.get(KEY)).toBeUndefined();
  expect(world.drains.requests).toEqual([]);
  expect(world.nodes.done.filter((what) => what.startsWith('remove'))).toEqual([]);
  expect(told).toContain(
    'Node m-1 is not known to be that of this Machine, so it is not drained. Initiate VM deletion',
  );
});
